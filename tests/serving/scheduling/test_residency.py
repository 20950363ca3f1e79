"""Does the least recently used copy leave, never one in use, and does everybody get a turn?"""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from perfkit.errors import ConfigError
from perfkit.serving.scheduling.residency import Residency, Stand


def use(residency, copy):
    """One whole use of a copy; whether it had to be loaded."""
    ticket = residency.ask(copy)
    was_absent = ticket.stand is Stand.LOAD
    if was_absent:
        residency.loaded(ticket)
    residency.hand_back(ticket)
    return was_absent


def test_the_least_recently_used_copy_leaves():
    residency = Residency(slots=2, copies=4)
    assert residency.resident == (0, 1)
    assert [use(residency, copy) for copy in (0, 2, 0, 1, 2)] == [False, True, False, True, True]
    assert residency.resident == (1, 2)
    assert residency.loads == 3


def test_a_round_through_more_copies_than_slots_loads_every_time():
    residency = Residency(slots=2, copies=3)
    assert [use(residency, number % 3) for number in range(2, 11)] == [True] * 9


def test_a_copy_in_use_stays_and_who_needs_its_slot_waits():
    residency = Residency(slots=1, copies=2)
    first, second = residency.ask(0), residency.ask(1)
    assert (first.stand, second.stand, residency.waiting) == (Stand.READY, Stand.WAITING, 1)
    residency.hand_back(first)
    assert (second.stand, second.slot, residency.resident) == (Stand.LOAD, 0, ())
    residency.loaded(second)
    assert residency.resident == (1,)


def test_two_users_of_one_absent_copy_load_it_once():
    residency = Residency(slots=1, copies=2)
    loader, other = residency.ask(1), residency.ask(1)
    assert (loader.stand, other.stand) == (Stand.LOAD, Stand.LOADING)
    residency.loaded(loader)
    assert (loader.stand, other.stand, residency.loads) == (Stand.READY, Stand.READY, 1)


def test_users_of_a_copy_that_is_there_cannot_keep_others_from_its_slot():
    residency = Residency(slots=1, copies=2)
    first, wants_slot, comes_later = residency.ask(0), residency.ask(1), residency.ask(0)
    assert comes_later.stand is Stand.WAITING
    residency.hand_back(first)
    assert (wants_slot.stand, comes_later.stand) == (Stand.LOAD, Stand.WAITING)


def test_after_a_failed_load_the_next_in_line_loads():
    residency = Residency(slots=1, copies=2)
    loader, other = residency.ask(1), residency.ask(1)
    residency.failed(loader)
    assert (other.stand, other.slot, residency.resident) == (Stand.LOAD, 0, ())


def test_a_device_without_room_is_refused():
    with pytest.raises(ConfigError, match="a device with 0 slots holds no copy; give it 1 or more"):
        Residency(slots=0, copies=2)


class AnyUse(RuleBasedStateMachine):
    """Users come, load, fail and go in any order; a plain list of uses tells what LRU must do."""

    def __init__(self):
        super().__init__()
        self.residency = Residency(slots=2, copies=5)
        self.held = []  # tickets not handed back, in the order of asking

    def with_stand(self, stand):
        return [ticket for ticket in self.held if ticket.stand is stand]

    @rule(copy=st.integers(0, 4))
    def ask(self, copy):
        self.held.append(self.residency.ask(copy))

    @precondition(lambda self: self.with_stand(Stand.LOAD))
    @rule(works=st.booleans(), which=st.integers(0, 9))
    def end_a_load(self, works, which):
        loaders = self.with_stand(Stand.LOAD)
        ticket = loaders[which % len(loaders)]
        if works:
            self.residency.loaded(ticket)
        else:
            self.residency.failed(ticket)
            self.held.remove(ticket)

    @precondition(lambda self: self.with_stand(Stand.READY))
    @rule(which=st.integers(0, 9))
    def hand_back(self, which):
        users = self.with_stand(Stand.READY)
        ticket = users[which % len(users)]
        self.held.remove(ticket)
        self.residency.hand_back(ticket)

    @invariant()
    def copies_with_a_slot_are_at_most_two_and_never_share_one(self):
        slots = {ticket.copy: ticket.slot for ticket in self.held if ticket.stand is not Stand.WAITING}
        assert len(slots) <= 2
        assert sorted(slots.values()) == sorted(set(slots.values()))

    @invariant()
    def what_is_ready_is_there_and_each_absent_copy_has_one_loader(self):
        assert {ticket.copy for ticket in self.with_stand(Stand.READY)} <= set(self.residency.resident)
        loading = [ticket.copy for ticket in self.with_stand(Stand.LOAD)]
        assert len(loading) == len(set(loading))
        assert {ticket.copy for ticket in self.with_stand(Stand.LOADING)} <= set(loading)

    @invariant()
    def somebody_waits_only_while_every_slot_is_in_use(self):
        waiting = self.with_stand(Stand.WAITING)
        assert len(waiting) == self.residency.waiting
        if waiting:
            assert len({ticket.copy for ticket in self.held if ticket.stand is not Stand.WAITING}) == 2

    def teardown(self):
        """Whoever waits gets a turn once the others are done."""
        turns = 10 * len(self.held) + 10
        while self.held and turns:
            turns -= 1
            for ticket in self.with_stand(Stand.LOAD):
                self.residency.loaded(ticket)
            for ticket in self.with_stand(Stand.READY)[:1]:
                self.held.remove(ticket)
                self.residency.hand_back(ticket)
        assert self.held == []


TestAnyUse = AnyUse.TestCase
