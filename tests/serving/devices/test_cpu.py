"""Torch's thread limit and inference mode are in force inside each worker."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from threading import Thread
from types import SimpleNamespace

import pytest

from perfkit.serving.devices.cpu import CpuDevice
from perfkit.serving.devices.device import OutOfDeviceMemory, Span

BATCH = SimpleNamespace(inputs=1, size=1, nbytes=0)


@pytest.fixture
def torch_log(monkeypatch):
    """A torch that writes down what is asked of it."""
    log = []

    @contextmanager
    def inference_mode():
        log.append("inference on")
        yield
        log.append("inference off")

    fake = SimpleNamespace(set_num_threads=lambda n: log.append(f"threads {n}"), inference_mode=inference_mode)
    monkeypatch.setitem(sys.modules, "torch", fake)
    return log


def test_a_lane_sets_threads_and_inference_mode_and_ends_the_mode_when_closed(torch_log):
    lane = CpuDevice().open_lane(worker="model-0", intra_op_threads=3)
    lane.run(lambda inputs: torch_log.append("predict"), BATCH)
    lane.close()
    assert torch_log == ["threads 3", "inference on", "predict", "inference off"]


def test_every_worker_sets_its_own_thread(torch_log):
    device = CpuDevice()
    for number in range(2):
        thread = Thread(target=lambda number=number: device.open_lane(worker=f"model-{number}"))
        thread.start()
        thread.join()
    assert torch_log == ["threads 1", "inference on"] * 2


def test_preparing_sets_the_process_default(torch_log):
    CpuDevice().prepare(intra_op_threads=2)
    assert torch_log == ["threads 2"]


def test_a_model_that_imports_torch_in_its_first_call_is_limited_from_the_second_on(monkeypatch, torch_log):
    torch = sys.modules["torch"]
    monkeypatch.delitem(sys.modules, "torch")
    lane = CpuDevice().open_lane(worker="model-0", intra_op_threads=2)
    lane.run(lambda inputs: monkeypatch.setitem(sys.modules, "torch", torch), BATCH)
    assert torch_log == []
    lane.run(lambda inputs: torch_log.append("predict"), BATCH)
    lane.run(lambda inputs: torch_log.append("predict"), BATCH)
    lane.close()
    assert torch_log == ["threads 2", "inference on", "predict", "predict", "inference off"]


COUNT_THREADS = """
import json, os, threading, types
import torch
from perfkit.serving.devices.cpu import CpuDevice
from perfkit.serving.devices.device import OutOfDeviceMemory, Span

device, matrix = CpuDevice(), torch.rand(600, 600)
batch = types.SimpleNamespace(inputs=matrix, size=1, nbytes=0)

def serve(threads, found):
    before = set(os.listdir("/proc/self/task"))
    lane = device.open_lane("model", intra_op_threads=threads)
    outputs, _ = lane.run(lambda inputs: inputs @ inputs, batch)
    found["added"] = len(set(os.listdir("/proc/self/task")) - before)
    found["effective"], found["inference"] = lane.effective_threads(), outputs.is_inference()
    lane.close()
    found["mode_after"] = torch.is_inference_mode_enabled()

device.prepare(1)
answers = []
for threads in (1, 2):
    found = {}
    worker = threading.Thread(target=serve, args=(threads, found))
    worker.start()
    worker.join()
    answers.append(found)
print(json.dumps(answers))
"""


def test_a_matrix_product_in_a_worker_starts_only_as_many_threads_as_the_lane_allows():
    """Asked of torch itself in a fresh process; two threads are its default there."""
    env = {**os.environ, "OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "2", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", COUNT_THREADS], env=env, capture_output=True, text=True, check=True)
    shared = {"inference": True, "mode_after": False}
    assert json.loads(done.stdout) == [
        {"added": 0, "effective": 1, **shared},
        {"added": 1, "effective": 2, **shared},
    ]


def test_a_model_without_torch_runs_without_importing_it():
    code = (
        "import sys, types; from perfkit.serving.devices.cpu import CpuDevice;"
        "lane = CpuDevice().open_lane('model-0');"
        "batch = types.SimpleNamespace(inputs=1, size=1, nbytes=0);"
        "print(lane.run(lambda x: x + 1, batch)[0], lane.effective_threads());"
        "lane.close(); print('torch' in sys.modules)"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["2", "1", "False"]


@pytest.mark.parametrize(
    "error", [MemoryError("no room"), RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory")]
)
def test_a_call_for_which_the_host_lacks_memory_says_so_in_the_devices_own_words(error):
    def call(inputs):
        raise error

    device = CpuDevice()
    span = Span(device.event(), device.event())
    with pytest.raises(OutOfDeviceMemory, match="the host has not got the memory for this call: "):
        device.run(call, 1, device.stream(), span)
    device.leave_worker()


def test_what_else_a_call_raises_stays_as_it_is():
    def call(inputs):
        raise RuntimeError("shapes do not match")

    device = CpuDevice()
    span = Span(device.event(), device.event())
    with pytest.raises(RuntimeError, match=r"^shapes do not match$"):
        device.run(call, 1, device.stream(), span)
    device.leave_worker()
