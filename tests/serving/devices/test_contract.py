"""What every device promises. A device joins by a rig in conftest.py."""

from threading import Thread
from types import SimpleNamespace

import pytest

from perfkit.serving.devices.device import DeviceMisuse, Span


def new_span(device):
    return Span(device.event(), device.event())


def instants(device, *spans):
    return [device.instant_ns(event) for span in spans for event in (span.started, span.ended)]


def run(rig, stream):
    span = new_span(rig.device)
    rig.device.run(rig.call, 1, stream, span)
    return span


def a_batch(inputs, nbytes=0):
    return SimpleNamespace(inputs=inputs, size=1, nbytes=nbytes)


def stamps(instants_of_call):
    names = (
        "h2d_started_ns",
        "h2d_ended_ns",
        "compute_started_ns",
        "compute_ended_ns",
        "d2h_started_ns",
        "d2h_ended_ns",
    )
    return [getattr(instants_of_call, name) for name in names]


def test_an_event_is_empty_until_recorded_and_an_empty_one_blocks_nobody(rig):
    event = rig.device.event()
    rig.device.synchronize(event)
    assert rig.device.instant_ns(event) == 0
    with pytest.raises(DeviceMisuse, match="an event is empty"):
        rig.device.elapsed_ns(event, event)


def test_an_event_happens_after_the_work_before_it_and_no_later_than_now(rig):
    device, stream = rig.device, rig.device.stream()
    before, after = device.event(), device.event()
    device.record(before, stream)
    span = run(rig, stream)
    device.record(after, stream)
    device.synchronize(after)
    order = [device.instant_ns(before), *instants(device, span), device.instant_ns(after)]
    assert order == sorted(order)
    assert order[-1] <= device.clock.now_ns() + rig.error_ns()
    assert device.elapsed_ns(span.started, span.ended) > 0


def test_calls_on_one_stream_follow_each_other(rig):
    device, stream = rig.device, rig.device.stream()
    first, second = run(rig, stream), run(rig, stream)
    device.synchronize(second.ended)
    order = instants(device, first, second)
    assert order == sorted(order)


def test_a_stream_starts_its_next_work_after_an_event_of_another_stream(rig):
    device, copies, kernels = rig.device, rig.device.stream(), rig.device.stream()
    h2d = new_span(device)
    staging = device.buffer(1 << 20, is_pinned=True)
    device.copy_in(rig.blob(1), 1 << 20, copies, h2d, staging)
    device.wait(kernels, h2d.ended)
    compute = run(rig, kernels)
    device.synchronize(compute.ended)
    assert device.instant_ns(h2d.ended) <= device.instant_ns(compute.started)


def test_copies_overlap_computing_where_there_are_copies_at_all(rig):
    device = rig.device
    blob, staging = rig.blob(7), device.buffer(1 << 20, is_pinned=True)  # both take their time
    kernels, copies, h2d = device.stream(), device.stream(), new_span(device)
    compute = run(rig, kernels)
    data = device.copy_in(blob, 1 << 20, copies, h2d, staging)
    device.synchronize(compute.ended)
    device.synchronize(h2d.ended)
    assert rig.number(data) == 7
    if device.has_copies:
        assert device.instant_ns(compute.started) <= device.instant_ns(h2d.started) < device.instant_ns(compute.ended)
    else:
        assert instants(device, h2d) == [0, 0]


def test_results_are_copied_out_after_they_were_computed(rig):
    device, stream = rig.device, rig.device.stream()
    compute, d2h = run(rig, stream), new_span(device)
    computed = rig.there(rig.blob(3))  # held until the copy is over
    outputs = device.copy_out(computed, stream, d2h)
    device.synchronize(compute.ended)
    device.synchronize(d2h.ended)
    assert rig.number(outputs) == 3
    if device.has_copies:
        assert device.instant_ns(compute.ended) <= device.instant_ns(d2h.started) < device.instant_ns(d2h.ended)
    else:
        assert instants(device, d2h) == [0, 0]


def test_memory_counts_what_is_held_and_the_most_that_ever_was(rig):
    device = rig.device
    small, large, pinned = device.buffer(100), device.buffer(1_000), device.buffer(50, is_pinned=True)
    device.free(large)
    memory = device.memory()
    assert (memory.allocated_bytes, memory.peak_bytes, memory.pinned_bytes) == (100, 1_100, 50)
    device.free(small)
    device.free(pinned)
    memory = device.memory()
    assert (memory.allocated_bytes, memory.peak_bytes, memory.pinned_bytes) == (0, 1_100, 0)


def test_a_buffer_is_freed_once(rig):
    buffer = rig.device.buffer(100)
    rig.device.free(buffer)
    with pytest.raises(DeviceMisuse, match="free a buffer once"):
        rig.device.free(buffer)


def test_a_lane_returns_the_outputs_and_instants_in_the_ledgers_order(rig):
    device = rig.device
    lane = device.open_lane(worker="model-0")
    entered_ns = device.clock.now_ns()
    outputs, measured = lane.run(rig.call, a_batch(rig.blob(5), nbytes=1 << 20))
    left_ns = device.clock.now_ns()
    lane.close()
    present = [stamp for stamp in stamps(measured) if stamp]
    assert rig.number(outputs) == 5
    assert len(present) == (6 if device.has_copies else 2)
    assert [entered_ns, *present, left_ns] == sorted([entered_ns, *present, left_ns])
    assert measured.clamped_ns <= rig.error_ns()
    assert measured.compute_started_ns < measured.compute_ended_ns


def test_a_batch_without_bytes_has_no_copies(rig):
    lane = rig.device.open_lane(worker="model-0")
    outputs, measured = lane.run(rig.call, a_batch(5))
    lane.close()
    assert outputs == 5
    assert [stamp > 0 for stamp in stamps(measured)] == [False, False, True, True, False, False]


def test_a_model_that_does_no_device_work_still_gets_its_two_compute_instants(rig):
    lane = rig.device.open_lane(worker="model-0")
    outputs, measured = lane.run(lambda inputs: inputs + 1, a_batch(5))
    lane.close()
    assert outputs == 6
    assert 0 < measured.compute_started_ns <= measured.compute_ended_ns


def test_a_model_that_raises_leaves_the_lane_usable(rig):
    lane = rig.device.open_lane(worker="model-0")
    with pytest.raises(ZeroDivisionError):
        lane.run(lambda inputs: 1 / 0, a_batch(5))
    assert lane.run(rig.call, a_batch(6))[0] == 6
    lane.close()


def test_a_closed_lane_holds_no_memory(rig):
    before = rig.device.memory()
    lane = rig.device.open_lane(worker="model-0")
    for nbytes in (1_000, 500, 2_000):
        lane.run(rig.call, a_batch(rig.blob(1, nbytes), nbytes))
    lane.close()
    after = rig.device.memory()
    assert (after.allocated_bytes, after.pinned_bytes) == (before.allocated_bytes, before.pinned_bytes)


def test_lanes_of_several_workers_do_not_mix_their_batches(rig):
    answers = {}

    def serve(worker):
        lane = rig.device.open_lane(worker=f"model-{worker}")
        answers[worker] = [lane.run(rig.call, a_batch((worker, number)))[0] for number in range(50)]
        lane.close()

    threads = [Thread(target=serve, args=(worker,)) for worker in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {worker: [(worker, number) for number in range(50)] for worker in range(8)}


def test_a_worker_that_asks_for_one_thread_has_one(rig):
    lane = rig.device.open_lane(worker="model-0", intra_op_threads=1)
    assert lane.effective_threads() == 1
    lane.close()


def test_statistics_carry_their_units_in_their_names(rig):
    stats = rig.device.stats()
    assert stats
    assert all(name.rsplit("_", 1)[1] in ("s", "bytes", "ratio", "requests", "count") for name in stats)


def test_giving_cached_memory_back_keeps_what_is_held(rig):
    device = rig.device
    held = device.buffer(1 << 10)
    before = device.memory().allocated_bytes
    device.release_cache()
    assert device.memory().allocated_bytes == before
    device.free(held)


def test_a_lane_works_on_after_it_has_given_its_staging_buffer_back(rig):
    lane = rig.device.open_lane("w")
    lane.run(rig.call, a_batch(1, nbytes=1 << 20))
    lane.release_cache()
    assert rig.device.memory().pinned_bytes == 0
    lane.run(rig.call, a_batch(1, nbytes=1 << 20))
    lane.close()
    assert rig.device.memory().pinned_bytes == 0
