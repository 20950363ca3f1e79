"""Do the models' tensors and their payloads mean the same? Their own examples go both ways."""

from __future__ import annotations

import base64

import numpy as np
import pytest

from perfkit.serving.devices.cpu import CpuDevice
from perfkit.serving.devices.simulated.device import SimulatedDevice
from perfkit.serving.server.json_signature import signature_of
from perfkit.serving.server.model import InputRefused
from perfkit.serving.server.oip.tensors import as_array
from sample_models.minilm import MiniLM
from sample_models.mlp import Mlp
from sample_models.noop import Noop
from sample_models.resnet import ResNet
from sample_models.simulated import SimulatedModel


def simulated():
    model = SimulatedModel("s002-textcls")
    return model, SimulatedDevice(model.preset, seed=0)


MODELS = {
    name: lambda kind=kind: (kind(), CpuDevice())
    for name, kind in {"minilm": MiniLM, "mlp": Mlp, "noop": Noop, "resnet": ResNet}.items()
} | {"simulated": simulated}


def answer_of(model, device, payload):
    """What a batch of one gives."""
    collated = model.collate([model.preprocess(payload)])
    lane = device.open_lane("test", 1)
    outputs, _ = lane.run(model.predict, collated)
    lane.close()
    return model.postprocess(model.split(outputs, 1)[0])


@pytest.mark.parametrize("name", MODELS)
def test_an_example_in_tensors_gives_the_answer_of_the_example_in_json(name):
    model, device = MODELS[name]()
    model.load(device, 0)
    signature = signature_of(model)
    (spec,) = signature.inputs
    example = model.example()
    value = [example] if spec.datatype == "BYTES" else example
    payload = signature.to_payload({spec.name: as_array(spec.name, value, spec.datatype, spec.shape)})
    plain, from_tensors = (signature.to_tensors(answer_of(model, device, given)) for given in (example, payload))
    assert set(from_tensors) == {output.name for output in signature.outputs}
    for output in signature.outputs:
        ours, theirs = (
            as_array(output.name, tensors[output.name], output.datatype, output.shape)
            for tensors in (from_tensors, plain)
        )
        if ours.dtype.kind == "f":
            np.testing.assert_allclose(ours, theirs, atol=1e-5)
        else:
            assert ours.tolist() == theirs.tolist()


def test_a_picture_may_come_as_it_is_or_in_base64():
    model = ResNet()
    text = model.example()
    to_payload = signature_of(model).to_payload
    raw = base64.b64decode(text)
    assert to_payload({"image": [raw]}) == raw
    assert to_payload({"image": [text.encode()]}) == text
    assert np.array_equal(model.preprocess(raw), model.preprocess(text))
    with pytest.raises(InputRefused, match="not base64"):
        model.preprocess(to_payload({"image": ["ü".encode()]}))
