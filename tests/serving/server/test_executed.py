"""Is a model at a level the same model, with its network run otherwise and its padding in the books?"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import json
import urllib.request
from types import SimpleNamespace

import numpy as np
import pytest

from perfkit import fields
from perfkit.errors import ConfigError
from perfkit.measuring.service import launch
from perfkit.serving.devices.cpu import CpuDevice
from perfkit.serving.server import executed
from perfkit.serving.server.elsewhere.child import ChildSpec
from perfkit.serving.server.elsewhere.messages import batch_call, read_batch_reply
from perfkit.serving.server.elsewhere.packing import pack, unpack
from perfkit.serving.server.elsewhere.process import load
from perfkit.serving.server.executed import Executed, at_level, get_ready
from perfkit.serving.server.padding import collate_of
from perfkit.serving.server.registry import create_model
from perfkit.settings.server import ServerSettings

TEXTS = ("How do I reset my password?", "ok", "The parcel came two days late, and the box was open. " * 3)


def settings_at(level, dtype="float32", **changes):
    return fields.replace(ServerSettings(), {"execution.level": level, "execution.dtype": dtype, **changes})


@pytest.fixture(scope="module")
def minilm():
    model = create_model("minilm")
    model.load(CpuDevice(), 0)
    return model


def embed(model, texts, collate=None):
    collated = (collate or model.collate)([model.preprocess(text) for text in texts])
    return np.stack(model.split(model.predict(collated.inputs), len(texts)))


def test_a_models_own_level_is_the_model_itself(minilm):
    settings = ServerSettings()
    assert at_level(minilm, settings, CpuDevice()) is minilm
    assert executed.stats(minilm, settings) == {
        "level": "own",
        "dtype": "float32",
        "difference": None,
        "graphs_ready": None,
        "graphs": None,
    }


def test_the_steps_that_are_not_the_network_stay_the_models(minilm):
    model = at_level(minilm, settings_at("inference_mode"), CpuDevice())
    assert (model.preprocess, model.postprocess, model.example) == (
        minilm.preprocess,
        minilm.postprocess,
        minilm.example,
    )
    assert (model.payloads, model.signature) == (minilm.payloads, minilm.signature)


@pytest.mark.parametrize(("level", "dtype", "apart"), [("jit", "float32", 1e-5), ("inference_mode", "bfloat16", 0.01)])
def test_minilm_gives_the_same_embeddings_at_a_level(minilm, level, dtype, apart):
    settings = settings_at(level, dtype)
    model = at_level(minilm, settings, CpuDevice())
    get_ready(model, settings)
    np.testing.assert_allclose(embed(model, TEXTS), embed(minilm, TEXTS), atol=apart)
    found = executed.stats(model, settings)
    assert (found["level"], found["dtype"], found["graphs"]) == (level, dtype, None)
    assert found["difference"]["difference_ratio"] <= found["difference"]["allowed_ratio"]


def test_a_level_with_fixed_shapes_pads_rows_and_lengths_and_the_books_show_it(minilm, monkeypatch):
    """Fixed shapes without a compiler: eager, told that it is static."""
    from perfkit.serving.execution.eager import InferenceMode

    monkeypatch.setattr(InferenceMode, "is_static", True)
    network = dataclasses.replace(minilm.network(), longest=64)
    monkeypatch.setattr(minilm, "network", lambda: network)
    settings = settings_at("inference_mode", **{"batch.max_size": 4, "batch.buckets": "16/32"})
    model = at_level(minilm, settings, CpuDevice())
    get_ready(model, settings)
    items = [minilm.preprocess(text) for text in TEXTS]
    collate = collate_of(model, settings.batch)
    own, collated = minilm.collate(items), collate(items)
    assert [tuple(one.shape) for one in collated.inputs] == [(4, 64), (4,)]
    assert (collated.size, collated.units, collated.padded_units) == (3, own.units, 4 * 64)
    assert collated.nbytes == 4 * 64 * 8 + 4 * 8
    np.testing.assert_allclose(embed(model, TEXTS, collate), embed(minilm, TEXTS), atol=1e-5)
    assert collate(items[1:2]).inputs[0].shape == (1, 16)


@pytest.mark.parametrize("name", ["mlp", "resnet"])
def test_the_other_sample_models_answer_alike_at_a_level(name):
    model = create_model(name)
    model.load(CpuDevice(), 3)
    settings = settings_at("jit")
    level = at_level(model, settings, CpuDevice())
    get_ready(level, settings)
    items = [model.preprocess(model.example())] * 2

    def outputs(one):
        return np.asarray(one.split(one.predict(one.collate(items).inputs), 2))

    np.testing.assert_allclose(outputs(level), outputs(model), atol=1e-5)


def test_a_level_of_any_shape_pads_as_the_setting_says(minilm):
    settings = settings_at("inference_mode", **{"batch.padding": "buckets", "batch.buckets": "48"})
    model = at_level(minilm, settings, CpuDevice())
    collated = collate_of(model, settings.batch)([minilm.preprocess("ok")])
    assert [tuple(one.shape) for one in collated.inputs] == [(1, 48), (1,)]


def test_a_model_without_a_network_is_refused_with_what_to_set():
    settings = fields.replace(settings_at("jit"), {"model": "noop"})
    with pytest.raises(ConfigError) as refusal:
        at_level(create_model("noop"), settings, CpuDevice())
    assert str(refusal.value) == (
        "execution.level is jit, but model noop shows no torch network (a method network); set execution.level = own"
    )


def test_a_level_with_fixed_shapes_needs_a_model_that_can_pad_its_rows(minilm):
    bare = SimpleNamespace(network=minilm.network)
    with pytest.raises(ConfigError, match=r"^execution.level is compile, which pads rows .* has no collate_to\("):
        at_level(bare, settings_at("compile"), CpuDevice())


def test_cuda_graphs_need_a_cuda_device(minilm):
    with pytest.raises(ConfigError, match=r"^execution.level is cuda_graph on device cpu; only a cuda device has gra"):
        at_level(minilm, settings_at("cuda_graph"), CpuDevice())


def test_getting_ready_leaves_the_thread_as_it_was(minilm):
    import torch

    settings = settings_at("inference_mode")
    model = at_level(minilm, settings, CpuDevice())
    assert isinstance(model, Executed)
    get_ready(model, settings)
    assert not torch.is_inference_mode_enabled()


def ask(service, document):
    request = urllib.request.Request(
        service.predict_url, json.dumps(document).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def test_a_server_at_a_level_answers_tells_its_difference_and_takes_live_changes():
    with launch(model="mlp", execution={"level": "jit", "dtype": "bfloat16"}, batch={"max_size": 2}) as service:
        document = {"input": [0.5] * 64}
        first = ask(service, document)["output"]
        service.configure({"workers": 2, "batch.max_size": 4})
        assert ask(service, document)["output"] == pytest.approx(first, abs=1e-3)
        found = service.stats()["execution"]
    assert (found["level"], found["dtype"]) == ("jit", "bfloat16")
    assert 0 < found["difference"]["difference_ratio"] < 0.06
    assert found["difference"]["bucket"] in ("1", "2", "4")


def test_a_server_that_cannot_serve_a_level_does_not_start_and_says_why():
    with pytest.raises(ConfigError, match="model noop shows no torch network"):
        launch(model="noop", execution={"level": "eager"})


def test_a_child_process_gets_its_own_model_ready_at_the_level():
    settings = settings_at("inference_mode", "bfloat16", model="mlp")
    model = create_model("mlp")
    model.load(CpuDevice(), settings.seed)
    item = model.preprocess(model.example())

    def as_in_a_child():
        answer, _ = load(ChildSpec(settings=settings, intra_op_threads=1, warm_up_sizes=(1,)))
        return unpack(read_batch_reply(answer(batch_call(0, pack([item])))).body)

    with concurrent.futures.ThreadPoolExecutor(1) as pool:  # whose thread keeps the mode of a worker
        (found,) = pool.submit(as_in_a_child).result()
    expected = model.predict(model.collate([item]).inputs).tolist()[0]
    assert found == pytest.approx(expected, abs=1e-3)
    assert found != expected, "it is the narrower type that answers"


@pytest.mark.slow
@pytest.mark.parametrize("level", ["compile", "aoti"])
def test_a_server_that_compiles_answers_like_the_models_own_level(level):
    document = {"inputs": [[0.5] * 64, [-0.5] * 64, [0.1] * 64]}
    with launch(model="mlp") as service:
        expected = ask(service, document)["outputs"]
    with launch(model="mlp", workers=2, batch={"max_size": 4}, execution={"level": level}) as service:
        for _ in range(20):
            assert np.array(ask(service, document)["outputs"]) == pytest.approx(np.array(expected), abs=1e-5)
        found = service.stats()["execution"]
    assert found["graphs"] == found["graphs_ready"] == (3 if level == "compile" else None)
