"""Are the live readings those of the last second, whoever asks: the growing file or the archived run?"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfkit.clock import NS_PER_S
from perfkit.measuring.load.samples import ROW
from perfkit.records import EndState
from perfkit.showing.notebook.live import NO_REPLIES, Replies, SampleTail, archived_replies, live_readings

STARTED_NS = 5 * NS_PER_S
MS = NS_PER_S // 1000


def replies_at(*seconds, latency_ms=10):
    """Replies so many seconds after the start, each as slow as the others."""
    received = STARTED_NS + np.array([round(second * NS_PER_S) for second in seconds], np.int64)
    return Replies(
        started_ns=STARTED_NS, received_ns=received, latency_ns=np.full(len(received), latency_ms * MS, np.int64)
    )


def row(request_id, received_ns, outcome=EndState.OK):
    """A sample as the generator writes it, sent 20 ms before the reply came."""
    scheduled_ns = (received_ns or STARTED_NS) - 20 * MS
    return ROW.pack(request_id, 0, scheduled_ns, scheduled_ns, received_ns, 200, int(outcome), 100, 100)


def test_each_reading_counts_the_replies_of_the_second_before_it():
    readings = live_readings(replies_at(0.1, 0.2, 0.9, 1.1, 1.2), [], STARTED_NS + 5 * NS_PER_S // 4)
    assert [(reading["time_ns"] - STARTED_NS) / NS_PER_S for reading in readings] == [0, 0.25, 0.5, 0.75, 1.0, 1.25]
    assert [reading.get("throughput_rps") for reading in readings] == [None, 8, 4, pytest.approx(8 / 3), 3, 3]


def test_quantiles_are_those_of_the_window_and_absent_without_a_reply():
    slow_then_fast = Replies(
        started_ns=STARTED_NS,
        received_ns=STARTED_NS + np.array([100, 200, 240, 1900]) * MS,
        latency_ns=np.array([30, 10, 20, 5]) * MS,
    )
    readings = live_readings(slow_then_fast, [], STARTED_NS + 2 * NS_PER_S)
    assert [(reading.get("p50_s"), reading.get("p99_s")) for reading in readings] == [
        (None, None),
        *[(0.02, 0.03)] * 4,
        *[(None, None)] * 3,
        (0.005, 0.005),
    ]


def test_queue_and_threads_are_the_latest_reading_of_the_last_second():
    gauges = [
        {"time_ns": STARTED_NS + at * MS, "queued": queued, "threads": 2 * queued}
        for at, queued in ((100, 3), (240, 7), (2100, 1))
    ]
    readings = live_readings(replies_at(0.1), gauges, STARTED_NS + 9 * NS_PER_S // 4)
    assert [reading.get("queued") for reading in readings] == [None, 7, 7, 7, 7, None, None, None, None, 1]
    assert [reading.get("threads") for reading in readings] == [None, 14, 14, 14, 14, None, None, None, None, 2]


def test_nothing_is_drawn_before_anything_is_known():
    assert live_readings(NO_REPLIES, [], STARTED_NS) == []


def test_a_tail_takes_up_new_rows_only_and_leaves_out_what_failed(tmp_path):
    path, tail = tmp_path / "load.samples", SampleTail()
    assert tail.read([path]) is NO_REPLIES
    path.write_bytes(row(1, STARTED_NS + 20 * MS) + row(2, 0, EndState.TIMED_OUT) + row(3, STARTED_NS + 50 * MS)[:30])
    assert tail.read([path]).received_ns.tolist() == [STARTED_NS + 20 * MS]
    path.write_bytes(path.read_bytes()[: 2 * ROW.size] + row(3, STARTED_NS + 50 * MS))
    replies = tail.read([path])
    assert (replies.started_ns, replies.received_ns.tolist()) == (STARTED_NS, [STARTED_NS + at * MS for at in (20, 50)])
    assert replies.latency_ns.tolist() == [20 * MS, 20 * MS]


def test_the_rows_of_several_generators_are_put_in_the_order_in_which_replies_came(tmp_path):
    paths, tail = [tmp_path / "load.samples", tmp_path / "load-1.samples"], SampleTail()
    paths[0].write_bytes(row(1, STARTED_NS + 20 * MS) + row(3, STARTED_NS + 60 * MS))
    paths[1].write_bytes(row(2, STARTED_NS + 40 * MS))
    replies = tail.read(paths)
    assert replies.received_ns.tolist() == [STARTED_NS + at * MS for at in (20, 40, 60)]


@given(st.lists(st.integers(0, 3 * NS_PER_S), max_size=60), st.integers(0, 60))
def test_a_reading_does_not_change_when_more_replies_come_later(offsets, known):
    received = STARTED_NS + np.sort(np.array(offsets, np.int64))
    everything = Replies(started_ns=STARTED_NS, received_ns=received, latency_ns=np.ones_like(received))
    first = Replies(started_ns=STARTED_NS, received_ns=received[:known], latency_ns=np.ones_like(received[:known]))
    until_ns = int(received[known]) - 1 if known < len(received) else STARTED_NS + 3 * NS_PER_S
    assert live_readings(first, [], until_ns) == live_readings(everything, [], until_ns)


def test_an_archived_run_gives_its_good_replies_in_the_order_in_which_they_came(profiled_run):
    replies = archived_replies(profiled_run)
    table = profiled_run.table("requests")
    good = table[table["end_state"] == "ok"].sort_values("received_ns")
    assert replies.received_ns.tolist() == good["received_ns"].tolist()
    assert replies.latency_ns.tolist() == (good["received_ns"] - good["scheduled_ns"]).tolist()
    assert replies.started_ns == profiled_run.stored.manifest.rounds[0]["started_ns"]
