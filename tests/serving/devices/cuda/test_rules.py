"""Is each rule of CUDA really enforced? One violation of each is planted, and the same thing done right passes."""

from threading import Thread
from types import SimpleNamespace

import pytest
import torch

from perfkit.serving.devices.cuda.device import CudaDevice
from perfkit.serving.devices.device import Span

MIB = 1 << 20


@pytest.fixture
def device(bare_gpu):
    device = CudaDevice(clock=bare_gpu.clock)
    device.prepare(1)
    return device


def breaks(gpu, rule, act):
    """The act is refused with this rule, and nothing else was broken on the way."""
    with pytest.raises(AssertionError, match=f"^{rule}: "):
        act()
    assert [error.rule for error in gpu.broken] == [rule]


def on_a_thread(act):
    """Do it on a thread of its own; raises what it raises."""
    errors = []

    def attempt():
        try:
            act()
        except BaseException as error:
            errors.append(error)

    thread = Thread(target=attempt)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]


def batch(inputs):
    return SimpleNamespace(inputs=inputs, size=1, nbytes=inputs.nbytes)


def test_nobody_waits_for_the_whole_device(bare_gpu):
    torch.cuda.Stream().synchronize()
    breaks(bare_gpu, "device-wide synchronize", torch.cuda.synchronize)


def test_a_copy_that_does_not_block_has_pinned_memory_at_the_hosts_side(bare_gpu):
    pageable, pinned = torch.ones(8), torch.ones(8).pin_memory()
    pageable.to("cuda")
    pinned.to("cuda", non_blocking=True)
    breaks(bare_gpu, "non_blocking without pinned memory", lambda: pageable.to("cuda", non_blocking=True))


def test_a_copy_back_that_does_not_block_needs_pinned_memory_too(bare_gpu):
    there = torch.ones(8).to("cuda")
    breaks(bare_gpu, "non_blocking without pinned memory", lambda: torch.empty(8).copy_(there, non_blocking=True))


def test_a_time_between_events_is_asked_for_after_somebody_has_waited_for_them(bare_gpu):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    torch.cuda._sleep(1_000_000)
    end.record()
    breaks(bare_gpu, "elapsed_time before synchronize", lambda: start.elapsed_time(end))
    end.synchronize()
    assert start.elapsed_time(end) == pytest.approx(1_000_000 / 1.98e6, rel=1e-3)


def test_what_one_stream_wrote_another_uses_after_an_event_only(bare_gpu):
    first, second, written = torch.cuda.Stream(), torch.cuda.Stream(), torch.cuda.Event()
    with torch.cuda.stream(first):
        data = torch.zeros(8, device="cuda")
        written.record()
    with torch.cuda.stream(second):
        breaks(bare_gpu, "cross-stream use", lambda: data + 1)
        second.wait_event(written)
        assert (data + 1).shape == (8,)


def test_what_one_stream_reads_another_overwrites_after_an_event_only(bare_gpu):
    data = torch.ones(8).to("cuda")
    first, second = torch.cuda.Stream(), torch.cuda.Stream()
    with torch.cuda.stream(first):
        total = data + 1
    with torch.cuda.stream(second):
        breaks(bare_gpu, "cross-stream use", data.zero_)
    assert total.is_cuda


def test_a_worker_that_forgets_to_let_computing_wait_for_the_copy_is_caught(bare_gpu, device):
    """The lane's own order, without its `wait`."""
    copies, kernels = device.stream(), device.stream()
    spans = [Span(device.event(), device.event()) for _ in range(2)]
    staging = device.buffer(MIB, is_pinned=True)
    inputs = device.copy_in(torch.ones(8), 32, copies, spans[0], staging)
    breaks(bare_gpu, "cross-stream use", lambda: device.run(lambda x: x * 2, inputs, kernels, spans[1]))


def test_there_is_no_stream_for_each_request(bare_gpu, device):
    def serve_in_a_stream_of_its_own():
        for _ in range(40):
            with torch.cuda.stream(torch.cuda.Stream()):
                torch.cuda._sleep(10)

    breaks(bare_gpu, "stream per request", serve_in_a_stream_of_its_own)


def test_a_pinned_buffer_is_read_after_the_copy_into_it_is_over(bare_gpu, device):
    stream, d2h = device.stream(), Span(device.event(), device.event(is_awaited=True))
    computed = device.place(torch.ones(8))
    outputs = device.copy_out(computed, stream, d2h)
    breaks(bare_gpu, "pinned read", outputs.tolist)
    device.synchronize(d2h.ended)
    assert outputs.tolist() == [1.0] * 8


def test_a_staging_buffer_is_rewritten_after_the_copy_from_it_is_over(bare_gpu):
    staging, copied = torch.empty(8, pin_memory=True), torch.cuda.Event()
    staging.copy_(torch.ones(8))
    there = staging.to("cuda", non_blocking=True)
    copied.record()
    breaks(bare_gpu, "staging rewrite", lambda: staging.copy_(torch.zeros(8)))
    copied.synchronize()
    staging.copy_(torch.zeros(8))
    assert there.is_cuda


def test_torch_works_on_the_workers_own_stream(bare_gpu, device):
    """A thread that the model starts is on the default stream again, and nothing orders what it does there."""
    lane, weight = device.open_lane("model-0"), device.place(torch.ones(8))
    assert lane.run(lambda x: x * weight, batch(torch.ones(8)))[0].tolist() == [1.0] * 8
    breaks(
        bare_gpu,
        "outside the worker's stream",
        lambda: lane.run(lambda x: on_a_thread(lambda: x * weight), batch(torch.ones(8))),
    )
    lane.close()


def test_memory_is_held_until_every_stream_is_through_with_it(bare_gpu):
    first, second, written = torch.cuda.Stream(), torch.cuda.Stream(), torch.cuda.Event()
    with torch.cuda.stream(first):
        data = torch.zeros(8, device="cuda")
        written.record()
    with torch.cuda.stream(second):
        second.wait_event(written)
        total = data + 1
    del data
    assert ([error.rule for error in bare_gpu.broken], total.is_cuda) == (["freed in use"], True)


def test_the_host_does_not_look_into_the_gpus_memory(bare_gpu):
    there = torch.ones(8).to("cuda")
    breaks(bare_gpu, "host read", there.tolist)


def test_a_weight_that_was_left_on_the_host_is_refused_as_torch_does(bare_gpu):
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        torch.nn.functional.linear(torch.ones(1, 8).to("cuda"), torch.ones(4, 8))
