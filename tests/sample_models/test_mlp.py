"""Does the MLP compute its four layers, from its seed alone, and refuse what is not 64 numbers?"""

import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from perfkit.serving.devices.cpu import CpuDevice
from perfkit.serving.server.model import InputRefused
from sample_models.mlp import WIDTHS, Mlp


@pytest.fixture(scope="module")
def mlp():
    model = Mlp()
    model.load(CpuDevice(), 7)
    return model


def answer(model, payloads):
    collated = model.collate([model.preprocess(payload) for payload in payloads])
    return [model.postprocess(row) for row in model.split(model.predict(collated.inputs), collated.size)]


def test_the_answer_is_that_of_the_same_layers_in_float64(mlp):
    x = np.array(mlp.example())
    for index, (weight, bias) in enumerate(mlp._layers):
        x = weight.double().numpy() @ x + bias.double().numpy()
        x = x if index == len(mlp._layers) - 1 else np.maximum(x, 0)
    assert answer(mlp, [mlp.example()])[0] == pytest.approx(x.tolist(), abs=1e-6)


def test_the_weights_fill_33_megabytes_in_the_stated_widths(mlp):
    assert WIDTHS == (64, 2048, 2048, 2048, 4)
    assert sum(weight.nbytes + bias.nbytes for weight, bias in mlp._layers) == 34_136_080


def test_a_batch_answers_each_request_as_if_it_were_alone(mlp):
    payloads = [[float(row - column) / 64 for column in range(64)] for row in range(5)]
    alone = [answer(mlp, [payload])[0] for payload in payloads]
    assert np.array(answer(mlp, payloads)) == pytest.approx(np.array(alone), abs=1e-6)


def test_the_seed_decides_the_weights_and_torchs_own_randomness_stays_where_it_was(mlp):
    same, other = Mlp(), Mlp()
    before = torch.random.get_rng_state()
    same.load(CpuDevice(), 7)
    other.load(CpuDevice(), 8)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert answer(same, [mlp.example()]) == answer(mlp, [mlp.example()])
    assert answer(other, [mlp.example()]) != answer(mlp, [mlp.example()])


@given(st.lists(st.floats(-3e38, 3e38) | st.integers(-(10**30), 10**30), min_size=64, max_size=64))
def test_what_goes_in_is_what_the_model_sees_in_float32(payload):
    model = Mlp()
    inputs = model.collate([model.preprocess(payload)] * 2).inputs
    assert np.array_equal(inputs.numpy(), np.array([payload] * 2, dtype=np.float64).astype(np.float32))


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        ("text", "of type str; send a list of 64 numbers"),
        ([0.5] * 63, "a list of 63 items; send a list of 64"),
        ([0.5] * 63 + [True], "item 63 of the input is of type bool"),
        ([0.5] * 10 + ["1"] + [0.5] * 53, "item 10 of the input is of type str"),
        ([[0.5]] + [0.5] * 63, "item 0 of the input is a list of 1 items"),
        ([math.nan] + [0.5] * 63, "NaN or an infinity"),
        ([math.inf, -math.inf] + [0.5] * 62, "NaN or an infinity"),
        ([1e39] + [0.5] * 63, "beyond float32"),
        ([10**400] + [0] * 63, "beyond float32"),
    ],
)
def test_a_payload_that_is_not_64_finite_numbers_is_refused_with_the_reason(mlp, payload, reason):
    with pytest.raises(InputRefused, match=reason):
        mlp.preprocess(payload)


def test_the_answer_is_json(mlp):
    assert len(json.loads(json.dumps(answer(mlp, [mlp.example()])[0]))) == 4
