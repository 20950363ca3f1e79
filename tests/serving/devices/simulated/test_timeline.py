"""What starts when on the timeline: told as stories of (engine work, stream, instant)."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfkit.errors import ConfigError
from perfkit.serving.devices.simulated.engine import EngineSpec, Stream
from perfkit.serving.devices.simulated.timeline import Timeline

LONG_AFTER_NS = 1 << 62
ENGINES = {"compute": EngineSpec(), "h2d": EngineSpec(), "delay": EngineSpec(slots=None)}


def new_timeline(**engines):
    return Timeline({**ENGINES, **engines}, seed=1)


def spans(timeline, operations):
    timeline.advance(LONG_AFTER_NS)
    return [(operation.started_ns, operation.ended_ns) for operation in operations]


def test_operations_of_one_stream_run_in_order_even_on_different_engines():
    timeline, stream = new_timeline(), Stream()
    operations = [timeline.submit(stream, engine, 10, 0) for engine in ("compute", "h2d", "compute")]
    assert spans(timeline, operations) == [(0, 10), (10, 20), (20, 30)]


def test_streams_overlap_on_different_engines_and_queue_on_the_same():
    timeline = new_timeline()
    operations = [
        timeline.submit(Stream(), engine, 10, at) for at, engine in ((0, "compute"), (1, "h2d"), (2, "compute"))
    ]
    assert spans(timeline, operations) == [(0, 10), (1, 11), (10, 20)]


def test_two_slots_serve_two_operations_side_by_side():
    timeline = new_timeline(compute=EngineSpec(slots=2))
    operations = [timeline.submit(Stream(), "compute", 10, at) for at in (0, 1, 2)]
    assert spans(timeline, operations) == [(0, 10), (1, 11), (10, 20)]


def test_a_delay_serves_everybody_at_once():
    timeline = new_timeline()
    operations = [timeline.submit(Stream(), "delay", 10, 0) for _ in range(3)]
    assert spans(timeline, operations) == [(0, 10)] * 3


def test_a_later_operation_of_higher_priority_overtakes_what_waits_but_interrupts_nothing():
    timeline = new_timeline()
    running = timeline.submit(Stream(), "compute", 10, 0)
    waiting = timeline.submit(Stream(), "compute", 10, 1)
    urgent = timeline.submit(Stream(priority=-1), "compute", 10, 9)
    assert spans(timeline, [running, waiting, urgent]) == [(0, 10), (20, 30), (10, 20)]


def test_priority_decides_between_operations_that_become_ready_at_the_same_instant():
    timeline = new_timeline()
    plain, urgent = Stream(), Stream(priority=-1)
    timeline.submit(plain, "delay", 10, 0)
    timeline.submit(urgent, "delay", 10, 0)
    operations = [timeline.submit(stream, "compute", 5, 0) for stream in (plain, urgent)]
    assert spans(timeline, operations) == [(15, 20), (10, 15)]


def test_equal_priorities_are_served_in_the_order_in_which_they_became_ready():
    timeline = new_timeline()
    slow, quick = Stream(), Stream()
    timeline.submit(slow, "delay", 20, 0)
    submitted_first = timeline.submit(slow, "compute", 5, 0)
    timeline.submit(quick, "delay", 10, 0)
    ready_first = timeline.submit(quick, "compute", 50, 0)
    assert spans(timeline, [submitted_first, ready_first]) == [(60, 65), (10, 60)]


def test_a_stream_waits_for_an_operation_of_another_stream():
    timeline = new_timeline()
    copies, kernels = Stream(), Stream()
    copy = timeline.submit(copies, "h2d", 30, 0)
    timeline.await_operation(kernels, copy)
    operations = [timeline.submit(kernels, "compute", 5, 0), timeline.submit(copies, "h2d", 5, 0)]
    assert spans(timeline, operations) == [(30, 35), (30, 35)]


def test_waiting_for_what_has_ended_holds_nothing_back():
    timeline = new_timeline()
    copy = timeline.submit(Stream(), "h2d", 10, 0)
    timeline.advance(50)
    kernels = Stream()
    timeline.await_operation(kernels, copy)
    assert spans(timeline, [timeline.submit(kernels, "compute", 5, 50)]) == [(50, 55)]


def test_work_of_no_length_keeps_its_place_in_the_stream():
    timeline, stream = new_timeline(), Stream()
    operations = [timeline.submit(stream, "compute", length, 7) for length in (0, 10, 0)]
    assert spans(timeline, operations) == [(7, 7), (7, 17), (17, 17)]


def test_busy_time_counts_work_up_to_now_and_covered_time_counts_overlap_once():
    timeline = new_timeline(compute=EngineSpec(slots=2))
    timeline.submit(Stream(), "compute", 10, 0)
    timeline.submit(Stream(), "compute", 10, 5)
    compute = timeline.engines["compute"]
    timeline.advance(8)
    assert compute.busy_ns(8) == 8 + 3
    timeline.advance(100)
    assert compute.busy_ns(100) == 20
    assert list(compute.intervals) == [(0, 10), (10, 15)]


def test_random_order_serves_each_once_and_differs_from_the_order_of_arrival():
    timeline = new_timeline(compute=EngineSpec(policy="random"))
    operations = [timeline.submit(Stream(), "compute", 10, 0) for _ in range(20)]
    started = [started_ns for started_ns, _ in spans(timeline, operations)]
    assert sorted(started) == list(range(0, 200, 10))
    assert started != sorted(started)


@pytest.mark.parametrize(("spec", "text"), [({"slots": 0}, "slots is 0"), ({"policy": "lifo"}, "policy is 'lifo'")])
def test_an_engine_refuses_what_it_cannot_be(spec, text):
    with pytest.raises(ConfigError, match=text):
        EngineSpec(**spec)


def test_operations_run_side_by_side_only_while_their_shares_are_one_together():
    timeline = new_timeline(compute=EngineSpec(slots=8))
    shares = (0.5, 0.25, 0.5, 0.25)
    operations = [timeline.submit(Stream(), "compute", 10, at, share) for at, share in enumerate(shares)]
    assert spans(timeline, operations) == [(0, 10), (1, 11), (10, 20), (10, 20)]  # the last does not slip past


def test_unfinished_work_is_found_also_where_it_waits_for_other_engines():
    timeline, stream = new_timeline(), Stream()
    timeline.submit(stream, "delay", 10, 0)
    copy, kernel = timeline.submit(stream, "h2d", 10, 0), timeline.submit(stream, "compute", 10, 0)
    queued = [timeline.submit(Stream(), "compute", 5, 0) for _ in range(2)]
    found = timeline.unfinished(["compute", "h2d"])
    assert {id(operation) for operation in found} == {id(operation) for operation in (copy, kernel, *queued)}
    timeline.advance(12)
    assert {id(operation) for operation in timeline.unfinished(["compute"])} == {id(kernel)}


JOBS = st.lists(
    st.tuples(
        st.integers(0, 3),  # stream, whose number is also its priority
        st.sampled_from(["compute", "h2d", "delay"]),
        st.integers(0, 20),  # length
        st.integers(0, 15),  # time since the job before
        st.booleans(),  # wait for the job before
    ),
    min_size=1,
    max_size=40,
)
POLICY = st.sampled_from(["fifo", "random"])


def play(jobs, policy, slots, leaps):
    """Submit jobs at their instants; between them move time on in one leap or in many small ones."""
    timeline = new_timeline(compute=EngineSpec(slots=slots, policy=policy))
    streams = [Stream(priority) for priority in range(4)]
    operations, now_ns = [], 0
    for number, engine, length_ns, pause_ns, waits in jobs:
        for _ in range(pause_ns if leaps else 0):
            timeline.advance(timeline.now_ns + 1)
        now_ns += pause_ns
        if waits and operations:
            timeline.advance(now_ns)
            timeline.await_operation(streams[number], operations[-1])
        operations.append(timeline.submit(streams[number], engine, length_ns, now_ns))
    return timeline, operations


@given(JOBS, POLICY, st.integers(1, 3))
def test_how_often_the_timeline_is_asked_changes_no_instant(jobs, policy, slots):
    assert spans(*play(jobs, policy, slots, leaps=False)) == spans(*play(jobs, policy, slots, leaps=True))


@given(JOBS, POLICY, st.integers(1, 3))
def test_streams_keep_their_order_and_engines_their_slots(jobs, policy, slots):
    ran = spans(*play(jobs, policy, slots, leaps=False))
    for number in range(4):
        of_stream = [span for span, job in zip(ran, jobs, strict=True) if job[0] == number]
        assert all(before[1] <= after[0] for before, after in pairwise(of_stream))
    for engine, limit in (("compute", slots), ("h2d", 1)):
        on_engine = [span for span, job in zip(ran, jobs, strict=True) if job[1] == engine]
        assert all(sum(started <= at < ended for started, ended in on_engine) <= limit for at, _ in on_engine)


@given(JOBS, POLICY, st.integers(1, 3))
def test_the_earliest_end_is_never_later_than_the_true_end_and_exact_once_started(jobs, policy, slots):
    timeline, operations = play(jobs, policy, slots, leaps=False)
    foreseen = [(operation.ended_ns, timeline.earliest_end_ns(operation)) for operation in operations]
    ran = spans(timeline, operations)
    for (known_ns, earliest_ns), (_, ended_ns) in zip(foreseen, ran, strict=True):
        assert earliest_ns <= ended_ns
        assert known_ns is None or known_ns == earliest_ns == ended_ns


SHARES = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 15), st.integers(1, 4)), min_size=1, max_size=40)


@given(SHARES, st.integers(1, 4))
def test_shares_never_add_up_to_more_than_the_whole_and_no_wait_is_foreseen_too_long(jobs, slots):
    timeline, operations, now_ns = new_timeline(compute=EngineSpec(slots=slots)), [], 0
    for length_ns, pause_ns, quarters in jobs:
        now_ns += pause_ns
        operations.append(timeline.submit(Stream(), "compute", length_ns, now_ns, quarters / 4))
    foreseen = [timeline.earliest_end_ns(operation) for operation in operations]
    ran = spans(timeline, operations)
    for at_ns, _ in ran:
        together = [job[2] / 4 for job, (started, ended) in zip(jobs, ran, strict=True) if started <= at_ns < ended]
        assert sum(together) <= 1.0
        assert len(together) <= slots
    assert all(earliest <= ended for earliest, (_, ended) in zip(foreseen, ran, strict=True))
