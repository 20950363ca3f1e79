"""How does the CUDA device use torch, and what does it make of torch's errors? All on a stand-in for the GPU."""

import os
from types import SimpleNamespace

import pytest
import torch

from perfkit import fields
from perfkit.errors import ConfigError, EnvironmentLacks
from perfkit.serving.devices.cuda.device import CudaDevice
from perfkit.serving.devices.device import DeviceLost, OutOfDeviceMemory, Span
from perfkit.serving.server.defaults import open_device
from perfkit.settings.cuda import CudaSettings
from perfkit.settings.queueing import LaneSettings
from perfkit.settings.server import ServerSettings

MIB = 1 << 20


@pytest.fixture
def device(gpu):
    device = CudaDevice(clock=gpu.clock)
    device.prepare(1)
    return device


def batch(*tensors):
    inputs = tensors[0] if len(tensors) == 1 else tensors
    nbytes = sum(tensor.nbytes for tensor in tensors if tensor is not None)
    return SimpleNamespace(inputs=inputs, size=1, nbytes=nbytes)


def double(inputs):
    torch.cuda._sleep(1_000_000)
    return inputs * 2


def calls_of(gpu, act):
    """What was asked of torch.cuda meanwhile."""
    before = len(gpu.calls)
    act()
    return gpu.calls[before:]


def test_a_batch_crosses_in_one_copy_and_its_worker_blocks_once_and_asleep(gpu, device):
    lane = device.open_lane("model-0")
    tensors = torch.ones(4, 3, dtype=torch.int64), torch.ones(4, dtype=torch.int16), torch.ones(4)
    lane.run(lambda inputs: inputs[0] * 2, batch(*tensors))
    calls = calls_of(gpu, lambda: lane.run(lambda inputs: inputs[0] * 2, batch(*tensors)))
    waits = [call for call in calls if call in ("sleep", "spin")]
    assert [calls.count(copy) for copy in ("copy h2d", "copy d2h")] == [1, 1]
    assert waits == ["spin", "sleep", "sleep"]  # the staging buffer, long free; the last event; one before it
    lane.close()


def test_a_worker_that_is_told_to_spin_never_sleeps(gpu):
    lane = CudaDevice(CudaSettings(wait="spinning"), clock=gpu.clock).open_lane("model-0")
    assert "sleep" not in calls_of(gpu, lambda: lane.run(double, batch(torch.ones(8))))
    lane.close()


def test_tensors_of_any_nesting_shape_and_type_arrive_as_they_left(device):
    lane = device.open_lane("model-0")
    ids, mask, scale = torch.arange(6).view(2, 3), torch.tensor([[True, False, True]] * 2), torch.tensor(2.5)
    data = {"ids": (ids, None), "rest": [mask, scale, ids.half().T], "text": "kept"}
    tensors = [ids, mask, scale, data["rest"][2]]
    inputs = SimpleNamespace(inputs=data, size=2, nbytes=sum(tensor.nbytes for tensor in tensors))
    outputs, _ = lane.run(lambda inputs: inputs, inputs)
    assert (outputs["text"], outputs["ids"][1]) == ("kept", None)
    arrived = [outputs["ids"][0], *outputs["rest"]]
    assert [tensor.tolist() for tensor in arrived] == [tensor.tolist() for tensor in tensors]
    lane.close()


def test_without_a_large_enough_staging_buffer_the_copy_blocks_instead(gpu, device):
    stream, pinned = device.stream(), device.buffer(8, is_pinned=True)
    span = Span(device.event(), device.event())
    data = device.copy_in(torch.ones(8), 32, stream, span, pinned)
    assert device.instant_ns(span.ended) == gpu.clock.now_ns()  # it is over: nobody has to wait for it
    assert data.is_cuda


def test_an_answer_keeps_its_memory_while_the_worker_goes_on(device):
    lane = device.open_lane("model-0")
    first, _ = lane.run(double, batch(torch.ones(8)))
    lane.run(double, batch(torch.zeros(8)))
    assert first.tolist() == [2.0] * 8
    lane.close()


def test_threads_that_come_and_go_share_the_streams_of_those_before(gpu, device):
    for _ in range(100):
        lane = device.open_lane("model-0")
        lane.run(double, batch(torch.ones(8)))
        lane.close()
    assert gpu.calls.count("Stream") == 4  # of the lanes, of the anchors, and for weights


def test_a_call_without_memory_leaves_the_worker_and_its_memory_as_they_were(gpu, device):
    """The next call needs what the failed one held, so it must be free although the error is still at hand."""
    lane = device.open_lane("model-0")
    gpu.capacity_bytes = gpu.allocated_bytes + 100 * MIB
    small = batch(torch.ones(1))

    def greedy(inputs):
        held = [torch.empty(60 * MIB, dtype=torch.uint8, device="cuda")]
        return [*held, torch.empty(60 * MIB, dtype=torch.uint8, device="cuda")]

    with pytest.raises(OutOfDeviceMemory, match="the GPU has not got the memory for this call: CUDA out of memory"):
        lane.run(greedy, small)
    lane.release_cache()
    lane.run(lambda inputs: torch.empty(90 * MIB, dtype=torch.uint8, device="cuda")[:1], small)
    assert device.stats()["device_oom_count"] == 1
    lane.close()


def test_a_model_that_raises_in_the_middle_leaves_nothing_running(gpu, device):
    lane = device.open_lane("model-0")

    def fails(inputs):
        double(inputs)
        raise KeyError("a model's own")

    for _ in range(3):
        with pytest.raises(KeyError, match="a model's own"):
            lane.run(fails, batch(torch.ones(8)))
    assert lane.run(double, batch(torch.ones(8)))[0].tolist() == [2.0] * 8
    lane.close()


def lose(gpu):
    gpu.lost = "an illegal memory access was encountered"


@pytest.mark.parametrize("where", ["between calls", "in the call", "while waiting"])
def test_an_error_that_stays_is_a_lost_device_wherever_it_shows(gpu, device, where):
    lane = device.open_lane("model-0")
    if where == "between calls":
        lose(gpu)
    elif where == "while waiting":
        device.copy_out = lambda outputs, stream, span: lose(gpu)

    def call(inputs):
        if where == "in the call":
            lose(gpu)
        return double(inputs)

    with pytest.raises(DeviceLost, match=r"^the CUDA device is lost: CUDA error: an illegal memory access"):
        lane.run(call, batch(torch.ones(8)))
    lane.close()


def test_an_error_that_passes_is_the_models_own(device):
    lane = device.open_lane("model-0")
    with pytest.raises(RuntimeError, match=r"^shapes cannot be multiplied"):
        lane.run(
            lambda inputs: (_ for _ in ()).throw(RuntimeError("shapes cannot be multiplied")), batch(torch.ones(8))
        )
    assert lane.run(double, batch(torch.ones(8)))[0].tolist() == [2.0] * 8
    lane.close()


def test_a_cap_on_memory_is_torchs_and_shows_in_the_capacity(gpu):
    device = CudaDevice(CudaSettings(memory_cap_ratio=0.25), clock=gpu.clock)
    assert (gpu.cap_ratio, device.memory().capacity_bytes) == (0.25, gpu.capacity_bytes // 4)
    with pytest.raises(OutOfDeviceMemory):
        device.buffer(gpu.capacity_bytes // 2)


def test_hardware_queues_are_asked_for_before_cuda_starts_and_recorded(gpu, monkeypatch):
    monkeypatch.delenv("CUDA_DEVICE_MAX_CONNECTIONS", raising=False)
    assert CudaDevice(clock=gpu.clock).stats()["device_connections_count"] == 0
    monkeypatch.setenv("CUDA_DEVICE_MAX_CONNECTIONS", "8")
    device = CudaDevice(CudaSettings(connections=32), clock=gpu.clock)
    assert (os.environ["CUDA_DEVICE_MAX_CONNECTIONS"], device.stats()["device_connections_count"]) == ("32", 32)


def test_a_worker_computes_in_inference_mode_and_with_its_own_number_of_threads(device):
    lane = device.open_lane("model-0", intra_op_threads=1)
    outputs, _ = lane.run(lambda inputs: inputs * torch.ones(1, device="cuda"), batch(torch.ones(1)))
    assert (torch.is_inference_mode_enabled(), lane.effective_threads()) == (True, 1)
    lane.close()
    assert (torch.is_inference_mode_enabled(), outputs.is_inference()) == (False, True)


def test_a_machine_without_a_gpu_is_told_what_it_takes():
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(EnvironmentLacks, match=r"^device is cuda, and torch .*; it takes an NVIDIA GPU, its driver"):
        open_device(ServerSettings(model="mlp", device="cuda"))


class OnCuda:
    runs_on_cuda = True


@pytest.mark.parametrize(
    ("model", "wanted", "name"),
    [(OnCuda(), "auto", "cuda"), (OnCuda(), "cpu", "cpu"), (object(), "auto", "cpu"), (object(), "cuda", "cuda")],
)
def test_a_gpu_is_taken_unasked_by_models_that_say_they_can_use_one(gpu, model, wanted, name):
    assert open_device(ServerSettings(model="x:Y", device=wanted), model).name == name


def test_without_a_gpu_such_a_model_is_served_on_the_cpu():
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    assert open_device(ServerSettings(model="x:Y"), OnCuda()).name == "cpu"


@pytest.mark.parametrize("values", [{"device": "cpu"}, {"model": "simulated:s001-a10"}])
def test_settings_of_cuda_are_refused_where_they_do_nothing(values):
    with pytest.raises(ConfigError, match=r"^a setting of cuda is changed with .*, where it does nothing; set device"):
        ServerSettings(cuda=CudaSettings(wait="spinning"), **values)


def test_a_lanes_priority_on_the_device_takes_workers_of_its_own(gpu):
    with pytest.raises(ConfigError, match=r"^lane fast has stream_priority = -1 and no workers of its own"):
        fields.replace(ServerSettings(), {"lanes.fast.stream_priority": -1})
    assert LaneSettings(workers=1, stream_priority=-2).stream_priority == -2
    device = CudaDevice(clock=gpu.clock)
    lane = device.open_lane("model-fast-0", 1, -2)
    assert sorted(line.priority for line in gpu.lines[1:]) == [-3, -2, 0, 0]
    lane.close()
