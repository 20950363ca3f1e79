"""Does shedding reject only what would have come too late? A steady service in virtual time."""

from __future__ import annotations

from copy import deepcopy

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from perfkit.serving.scheduling.decisions import Limits, Rejected, Send
from perfkit.serving.scheduling.scheduler import Scheduler

CALL_NS = 1_000


class Item:
    lane, is_alone, queued_ns = 0, False, 0

    def __init__(self, deadline_ns):
        self.deadline_ns = deadline_ns


class SteadyService:
    """One worker whose call takes `CALL_NS` whatever the batch: the predictor's own model."""

    def __init__(self, max_size):
        self.queue = Scheduler(Limits(max_size=max_size, max_delay_ns=0, depth=None, policy="shed"))
        self.free_ns = 0
        self.sent = []

    def run_until(self, now_ns):
        """The worker takes batches until then."""
        while self.free_ns <= now_ns and self.queue.queued:
            decision = self.queue.decide(self.free_ns)
            if isinstance(decision, Send):
                self.sent += decision.batch
                self.free_ns += CALL_NS

    def arrive(self, item, now_ns):
        """The item comes; what became of its admission."""
        self.run_until(now_ns)
        admission = self.queue.admit([item], now_ns)
        if admission is None:
            item.queued_ns = now_ns
            self.queue.enqueue(item)
            self.free_ns = max(self.free_ns, now_ns)
            self.run_until(now_ns)
        return admission

    def would_send(self, item, now_ns):
        """Whether the item would be sent in time, were it let in, did nobody come after it and nobody before expire."""
        other = deepcopy(self)
        other.queue._sheds = False
        for ahead in other.queue._waiting:
            ahead.deadline_ns = 0
        other.arrive(item, now_ns)
        other.run_until(now_ns + CALL_NS * (other.queue.queued + 2))
        return item in other.sent


@settings(max_examples=150)
@given(
    max_size=st.integers(1, 5),
    arrivals=st.lists(st.tuples(st.integers(0, 700), st.integers(1, 6_000)), min_size=1, max_size=60),
)
def test_nobody_is_shed_who_would_have_been_sent_in_time(max_size, arrivals):
    service, now_ns = SteadyService(max_size), 1
    for gap_ns, patience_ns in arrivals:
        now_ns += gap_ns
        item = Item(now_ns + patience_ns)
        expected = deepcopy(item)
        admission = service.arrive(item, now_ns)
        if isinstance(admission, Rejected):
            assert admission.reason == "shed"
            assert not service.would_send(expected, now_ns), "it would have been sent in time"


@pytest.mark.parametrize("patience_ns", [2_000, 5_000])
def test_a_flood_is_cut_to_what_makes_its_deadline(patience_ns):
    """Four times what the service does, so that without shedding nearly all of it would expire."""
    service, shed = SteadyService(1), 0
    items = []
    for now_ns in range(1, 200_000, CALL_NS // 4):
        item = Item(now_ns + patience_ns)
        items.append(item)
        shed += service.arrive(item, now_ns) is not None
    service.run_until(300_000)
    admitted = len(items) - shed
    assert shed > 0.6 * len(items)
    assert len(service.sent) >= 0.9 * admitted
