"""Does NVIDIA's own client get on with the server? Metadata, both forms of tensors, statistics, and refusals."""

from __future__ import annotations

from urllib.parse import urlsplit

import numpy as np
import pytest

from perfkit.measuring.service import launch
from sample_models.jpeg import example_jpeg

http = pytest.importorskip("tritonclient.http", reason="tritonclient[http] is not installed (pip install .[dev])")
from tritonclient.utils import InferenceServerException  # noqa: E402

LONGER = ("mlp", "minilm", "resnet", "simulated:s002-textcls", "lab_models:OnlyPredict")
MODELS = ["noop", "lab_models:Pair", *(pytest.param(name, marks=pytest.mark.slow) for name in LONGER)]
INPUTS = {
    "noop": {"numbers": np.full((3, 64), 0.5, dtype=np.float32)},
    "mlp": {"numbers": np.linspace(-1, 1, 128, dtype=np.float32).reshape(2, 64)},
    "minilm": {"text": np.array([["How are you?"], ["Grüße"]], dtype=object)},
    "resnet": {"image": np.array([[example_jpeg()]], dtype=object)},  # in base64, for JSON holds no bytes
    "simulated:s002-textcls": {"text": np.array([["a"]], dtype=object)},
    "lab_models:Pair": {
        "numbers": np.array([[1, 2], [3, 4]], dtype=np.int32),
        "name": np.array([["a"], ["ü"]], dtype=object),
    },
    "lab_models:OnlyPredict": {"input": np.array([['"a"'], ['"b"']], dtype=object)},
}


@pytest.fixture(scope="module", params=MODELS)
def served(request, models_on_path):
    """A service of each model, and a client of it."""
    with launch(model=request.param, ledger={"capacity": 4096}) as service:
        client = http.InferenceServerClient(urlsplit(service.url).netloc, network_timeout=20.0)
        yield client, request.param
        client.close()


def infer_inputs(model, client, *, binary):
    datatypes = {tensor["name"]: tensor["datatype"] for tensor in client.get_model_metadata(model)["inputs"]}
    tensors = []
    for name, array in INPUTS[model].items():
        tensor = http.InferInput(name, list(array.shape), datatypes[name])
        tensors.append(tensor.set_data_from_numpy(array, binary_data=binary))
    return tensors


def test_the_server_and_its_model_describe_themselves(served):
    client, model = served
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready(model)
    assert client.is_model_ready(model, "1")
    assert not client.is_model_ready(model, "2")
    assert client.get_server_metadata()["name"] == "perfkit"
    metadata, config = client.get_model_metadata(model), client.get_model_config(model)
    assert [tensor["shape"] for tensor in metadata["inputs"]] == [[-1, *tensor["dims"]] for tensor in config["input"]]
    assert {tensor["name"] for tensor in metadata["inputs"]} == set(INPUTS[model])
    assert client.get_model_repository_index() == [{"name": model, "version": "1", "state": "READY", "reason": ""}]


def test_json_and_bytes_give_the_same_answer_in_every_combination(served):
    client, model = served
    names = [tensor["name"] for tensor in client.get_model_metadata(model)["outputs"]]
    answers = []
    for sends_binary in (False, True):
        for takes_binary in (False, True):
            outputs = [http.InferRequestedOutput(name, binary_data=takes_binary) for name in names]
            inputs = infer_inputs(model, client, binary=sends_binary)
            result = client.infer(model, inputs, outputs=outputs, request_id="mine")
            assert result.get_response()["id"] == "mine"
            answers.append([result.as_numpy(name) for name in names])
    inputs = infer_inputs(model, client, binary=True)
    result = client.infer(model, inputs, model_version="1")  # no outputs named: all of them, as bytes
    answers.append([result.as_numpy(name) for name in names])
    for answer in answers:
        for array, first in zip(answer, answers[0], strict=True):
            texts = [str(one, "utf-8") if isinstance(one, bytes) else one for one in array.reshape(-1).tolist()]
            assert (array.shape, texts) == (first.shape, first.reshape(-1).tolist())


def test_statistics_grow_by_what_was_asked(served):
    client, model = served
    (before,) = client.get_inference_statistics(model)["model_stats"]
    for _ in range(5):
        client.infer(model, infer_inputs(model, client, binary=True))
    (after,) = client.get_inference_statistics(model, "1")["model_stats"]
    rows = len(next(iter(INPUTS[model].values())))
    assert after["inference_count"] - before["inference_count"] == 5 * rows
    for name in ("success", "queue", "compute_input", "compute_infer", "compute_output"):
        grown = {
            key: after["inference_stats"][name][key] - before["inference_stats"][name][key] for key in ("count", "ns")
        }
        assert (grown["count"], grown["ns"] > 0) == (5 * rows, True), name
    parts = ("queue", "compute_input", "compute_infer", "compute_output")
    stats = after["inference_stats"]
    assert sum(stats[name]["ns"] for name in parts) <= stats["success"]["ns"]
    assert after["last_inference"] > before["last_inference"]
    assert client.get_inference_statistics() == client.get_inference_statistics(model)


def test_refusals_come_as_the_clients_own_error_with_status_and_reason(served):
    client, model = served
    inputs = infer_inputs(model, client, binary=True)
    with pytest.raises(InferenceServerException, match="this server has") as unknown:
        client.infer("other", inputs)
    assert unknown.value.status() == "404"
    wrong = http.InferInput(inputs[0].name(), [1, 7], "FP32").set_data_from_numpy(np.ones((1, 7), dtype=np.float32))
    with pytest.raises(InferenceServerException, match=f"tensor '{inputs[0].name()}' has the") as refused:
        client.infer(model, [wrong, *inputs[1:]])
    assert refused.value.status() == "400"
    with pytest.raises(InferenceServerException, match="unknown output 'x'"):
        client.infer(model, inputs, outputs=[http.InferRequestedOutput("x")])


def test_asynchronous_calls_keep_their_ids(served):
    client, model = served
    inputs = infer_inputs(model, client, binary=True)
    calls = [client.async_infer(model, inputs, request_id=f"n{number}") for number in range(10)]
    assert [call.get_result().get_response()["id"] for call in calls] == [f"n{number}" for number in range(10)]
