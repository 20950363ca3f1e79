"""Does the bench for a real GPU keep CUDA's rules, and do all checks come to their end on it?

On the stand-in for torch.cuda, which computes on the CPU: this proves the calls and their order, no figure.
"""

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from perfkit.measuring.gpucheck import networks
from perfkit.measuring.gpucheck.bench import BLOCKING, EAGER, GRAPH, SPINNING
from perfkit.measuring.gpucheck.check import Effort
from perfkit.measuring.gpucheck.checks import copies, out_of_memory, replicas, thread_scan
from perfkit.measuring.gpucheck.closeness import error_ratio
from perfkit.measuring.gpucheck.order import CHECKS
from perfkit.measuring.gpucheck.worker import lane, request, worker

TINY = networks.EncoderSize(layers=1, width=16, heads=2, tokens=4)
LIKE_THE_SCAN = {13, 15}  # the same loop again
WITHOUT_TIME = {"1.outputs", "4.mismatches", "7.outputs", "12.caught", "12.unharmed"}  # what no clock decides
WITHOUT_SANITIZER = [check for check in CHECKS if check.name != "order between streams"]


class Recorder(TorchFunctionMode):
    """Notes every call, as a capture does."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if isinstance(result, Tensor):
            self.calls.append((func, args, kwargs or {}, result))
        return result


class Graph:
    """Replays by doing all calls again and writing over what they gave at the capture."""

    def capture_begin(self, capture_error_mode):
        assert capture_error_mode == "thread_local"
        self.recorder = Recorder()
        self.recorder.__enter__()

    def capture_end(self):
        self.recorder.__exit__(None, None, None)

    def replay(self):
        for func, args, kwargs, result in self.recorder.calls:
            again = func(*args, **kwargs)
            if again.data_ptr() != result.data_ptr():
                result.copy_(again)


class Watcher:
    """In the place of torch's sanitizer, which needs a GPU."""

    is_on = False

    def enable(self):
        self.is_on = True

    def disable(self):
        self.is_on = False

    def report(self, stream, event):
        from torch.cuda import _sanitizer

        assert self.is_on
        raise _sanitizer.CUDASanitizerErrors(["two streams, no event"])


@pytest.fixture
def cuda_bench(gpu, monkeypatch):
    from perfkit.measuring.gpucheck.cuda_bench import CudaBench

    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    return CudaBench(size=TINY, matrix=8)


@pytest.mark.parametrize("level", [EAGER, GRAPH])
def test_a_level_gives_each_batch_its_own_outputs(cuda_bench, level):
    with lane(cuda_bench, "one") as mine:
        encoder = cuda_bench.encoder(level, (1, 4))
        for size in (1, 4, 1):
            batch = cuda_bench.texts(size, seed=size)
            outputs, _ = request(cuda_bench, mine, encoder, batch)
            assert error_ratio(outputs, cuda_bench.expected(batch)) < 1e-2


def test_a_spin_lasts_its_cycles(cuda_bench):
    with worker(cuda_bench) as mine:
        assert mine.call(cuda_bench.spin(0.01)).device_s == pytest.approx(0.01, rel=0.01)


def test_threads_sleep_or_spin_as_they_are_told(cuda_bench, gpu):
    for wait, called in ((BLOCKING, "sleep"), (SPINNING, "spin")):
        with worker(cuda_bench.waiting(wait)) as mine:
            gpu.calls.clear()
            mine.call(cuda_bench.spin(0.001))
            assert called in gpu.calls


def test_a_pageable_copy_is_never_asked_to_be_asynchronous(cuda_bench, gpu):
    with worker(cuda_bench) as mine:
        for is_pinned in (True, False):
            cuda_bench.copy(1 << 16, is_pinned)(mine.stream, mine.span)
            mine.device.synchronize(mine.span.ended)
    assert gpu.broken == []


def test_what_torchs_sanitizer_reports_is_told_and_it_is_off_afterwards(cuda_bench, monkeypatch):
    from torch.cuda import _sanitizer

    watcher = Watcher()
    monkeypatch.setattr(_sanitizer, "cuda_sanitizer", watcher)
    assert cuda_bench.unordered_uses(3) == []
    monkeypatch.setattr(cuda_bench.device, "wait", watcher.report)
    assert cuda_bench.unordered_uses(3) == ["two streams, no event"]
    assert watcher.is_on is False


@pytest.mark.parametrize(
    "check",
    [
        pytest.param(check, id=check.name, marks=pytest.mark.slow if check.number in LIKE_THE_SCAN else ())
        for check in WITHOUT_SANITIZER
    ],
)
def test_every_check_comes_to_its_end_and_breaks_no_rule(cuda_bench, gpu, check, monkeypatch):
    monkeypatch.setattr(thread_scan, "THREADS", (1, 2))
    monkeypatch.setattr(replicas, "REPLICAS", (1, 2))
    monkeypatch.setattr(copies, "NBYTES", 1 << 20)
    monkeypatch.setattr(out_of_memory, "NBYTES", 2 * gpu.capacity_bytes)
    lines = {line.id: line for line in check.judge(check.measure(cuda_bench, Effort(0.01)))}
    assert set(lines) == {claim.id for claim in check.claims}
    assert {lines[claim].status for claim in WITHOUT_TIME & set(lines)} <= {"pass"}
    assert gpu.broken == []
