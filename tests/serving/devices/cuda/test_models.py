"""Do the sample models compute on the GPU what they compute on the CPU? Their weights must be placed."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from perfkit.serving.devices.cpu import CpuDevice
from perfkit.serving.devices.cuda.device import CudaDevice
from perfkit.serving.server.executed import at_level, get_ready
from perfkit.settings.execution import ExecutionSettings
from perfkit.settings.queueing import BatchSettings
from perfkit.settings.server import ServerSettings
from sample_models.minilm import MiniLM
from sample_models.mlp import Mlp
from sample_models.resnet import ResNet

TEXTS = ["what is my balance", "cancel the order that I placed yesterday evening, please"]


def served(model, device, payloads):
    """What a worker's lane makes of the payloads, in one batch."""
    with device.loading():
        model.load(device, seed=3)
    device.prepare(1)
    lane = device.open_lane("model-0")
    outputs, _ = lane.run(model.predict, model.collate([model.preprocess(payload) for payload in payloads]))
    answers = [model.postprocess(output) for output in model.split(outputs, len(payloads))]
    lane.close()
    return answers


@pytest.mark.parametrize("kind", [Mlp, MiniLM, ResNet])
def test_a_model_answers_from_the_gpu_as_from_the_cpu(gpu, kind):
    payloads = TEXTS if kind is MiniLM else [kind().example()] * 2
    expected = served(kind(), CpuDevice(), payloads)
    answers = served(kind(), CudaDevice(clock=gpu.clock), payloads)
    if kind is ResNet:
        expected, answers = ([answer["score"] for answer in found] for found in (expected, answers))
    assert np.allclose(answers, expected, atol=1e-5)
    assert gpu.calls.count("copy d2h") == 1


def test_a_model_that_leaves_a_weight_on_the_host_is_caught(gpu):
    model = Mlp()
    model.load(CpuDevice(), seed=3)
    lane = CudaDevice(clock=gpu.clock).open_lane("model-0")
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        lane.run(model.predict, SimpleNamespace(inputs=torch.ones(1, 64), size=1, nbytes=256))
    lane.close()


@pytest.mark.parametrize("kind", [Mlp, MiniLM, ResNet])
def test_a_model_at_another_level_and_in_another_type_follows_the_same_rules(gpu, kind):
    settings = ServerSettings(
        model="x:Y",
        execution=ExecutionSettings(level="inference_mode", dtype="bfloat16"),
        batch=BatchSettings(max_size=2, buckets="32"),
    )
    device, payloads = CudaDevice(clock=gpu.clock), TEXTS if kind is MiniLM else [kind().example()] * 2
    with device.loading():
        loaded = kind()
        loaded.load(device, seed=3)
    device.prepare(1)
    model = at_level(loaded, settings, device)
    get_ready(model, settings)
    lane = device.open_lane("model-0")
    outputs, _ = lane.run(model.predict, model.collate([model.preprocess(payload) for payload in payloads]))
    assert len(model.split(outputs, 2)) == 2
    lane.close()
