"""Is each CUDA graph captured by its worker, under the lock, in the right mode, and replayed into its own memory?

Against a stand-in that plays torch.cuda on the host: this proves the order of the calls, not CUDA.
"""

import contextlib
import threading

import pytest
import torch

from perfkit.serving.execution.graph import CudaGraphs


class FakeCuda:
    """Replays by calling the module again on the fixed inputs; notes every call with its thread."""

    def __init__(self):
        self.log = []
        self.capturing = None
        self.overlaps = 0
        self.current = threading.local()

    def note(self, what):
        self.log.append((threading.current_thread().name, what))

    def stream(self, stream):
        @contextlib.contextmanager
        def entered():
            before = self.current_stream()
            self.current.stream = stream
            yield
            self.current.stream = before

        return entered()

    def current_stream(self):
        return getattr(self.current, "stream", DEFAULT)


class FakeStream:
    def synchronize(self):
        CUDA[-1].note("synchronize stream")


class FakeGraph:
    def capture_begin(self, capture_error_mode):
        cuda = CUDA[-1]
        assert cuda.current_stream() is not DEFAULT, "the default stream cannot be captured"
        cuda.overlaps += cuda.capturing is not None
        cuda.capturing = self
        cuda.note(f"begin {capture_error_mode}")

    def capture_end(self):
        CUDA[-1].capturing = None
        CUDA[-1].note("end")

    def replay(self):
        CUDA[-1].note("replay")
        self.outputs.copy_(self.module(*self.inputs))


DEFAULT = FakeStream()
CUDA = []


@pytest.fixture
def cuda(monkeypatch):
    fake = FakeCuda()
    CUDA.append(fake)
    monkeypatch.setattr(torch.cuda, "current_stream", fake.current_stream)
    monkeypatch.setattr(torch.cuda, "default_stream", lambda: DEFAULT)
    monkeypatch.setattr(torch.cuda, "stream", fake.stream)
    monkeypatch.setattr(torch.cuda, "Stream", FakeStream)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", FakeGraph)
    yield fake
    CUDA.pop()


@pytest.fixture
def graphs(network, cuda):
    level = CudaGraphs()
    level.prepare(network.module, network, [network.example(1, 4), network.example(2, 4)])
    return level


def bind(call, module):
    """Give the stand-ins what a real graph has recorded: the module and its fixed buffers."""
    (table,) = [cell.cell_contents for cell in call.__closure__ if isinstance(cell.cell_contents, dict)]
    for captured in table.values():
        graph = captured._graph
        graph.module, graph.inputs, graph.outputs = module, captured._inputs, captured._outputs
    return call


def test_a_worker_captures_every_bucket_after_its_warm_up_in_the_mode_that_others_cannot_spoil(graphs, cuda):
    graphs.open()
    steps = [what for _, what in cuda.log]
    assert steps == ["synchronize stream", "begin thread_local", "end"] * 2


def test_workers_capture_one_after_the_other(graphs, cuda):
    threads = [threading.Thread(target=graphs.open) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (cuda.overlaps, sum(what == "end" for _, what in cuda.log)) == (0, 6)


def test_a_replay_computes_the_arguments_and_the_next_one_leaves_its_outputs_alone(graphs, network, cuda):
    call = bind(graphs.open(), network.module)
    ids, lengths = network.example(2, 4)
    with torch.inference_mode():
        first = call(ids, lengths)
        kept = first.clone()
        second = call(ids + 1, lengths)
        assert torch.equal(first, kept)
        torch.testing.assert_close(first, network.module(ids, lengths))
        torch.testing.assert_close(second, network.module(ids + 1, lengths))


def test_a_capture_that_fails_is_ended(graphs, network, cuda, monkeypatch):
    calls = []

    def forward(*arguments):
        calls.append(1)
        if len(calls) > 3:  # the warm-up's
            raise RuntimeError("not while capturing")
        return torch.zeros(1, 2)

    monkeypatch.setattr(network.module, "forward", forward)
    with pytest.raises(RuntimeError, match="not while capturing"):
        graphs.open()
    assert cuda.capturing is None


def test_a_thread_that_outlives_a_setting_captures_what_was_prepared_for_the_next(graphs, network, cuda):
    call = graphs.open()
    before = len(cuda.log)
    with pytest.raises(KeyError):
        call(*network.example(3, 4))
    graphs.prepare(network.module, network, [network.example(3, 4)])
    with pytest.raises(AttributeError, match="outputs"):  # it is captured, and the stand-in cannot replay it yet
        call(*network.example(3, 4))
    assert [what for _, what in cuda.log[before:]] == ["synchronize stream", "begin thread_local", "end", "replay"]
