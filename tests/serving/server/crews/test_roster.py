"""Do threads that come and go have few names, and is every one of them counted?"""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfkit.clock import REAL_CLOCK
from perfkit.serving.server.crews.crew import Headcount
from perfkit.serving.server.crews.roster import Roster
from perfkit.serving.server.deaths import Deaths


def book():
    """A book of deaths that nobody reads."""
    return Deaths(REAL_CLOCK, print)


class HeldThread:
    """A thread that ends when the test says so."""

    made: list[HeldThread] = []  # noqa: RUF012 - emptied by each test

    def __init__(self, target, args, name, daemon):
        self.name, self.ident = name, None
        self._work = (target, args)
        HeldThread.made.append(self)

    def start(self):
        pass

    def end(self):
        target, args = self._work
        target(*args)


@given(st.lists(st.integers(0, 5), max_size=60))
def test_a_new_thread_has_the_lowest_free_number_and_the_counts_are_those_of_the_threads(leavers):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading, "Thread", HeldThread)
        HeldThread.made.clear()
        roster, here, peak = Roster("model", book()), {}, 0
        for started, leaver in enumerate(leavers, 1):
            roster.start(lambda name: None)
            thread = HeldThread.made[-1]
            lowest = next(number for number in range(len(here) + 1) if f"model-{number}" not in here)
            assert thread.name == f"model-{lowest}"
            here[thread.name] = thread
            peak = max(peak, len(here))
            if f"model-{leaver}" in here:
                here.pop(f"model-{leaver}").end()
            assert roster.headcount() == Headcount(current=len(here), peak=peak, started=started)


def test_a_thread_that_the_system_refuses_leaves_its_number_free(monkeypatch):
    roster = Roster("model", book())

    def refuse(self):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError):
            roster.start(lambda name: None)
    names = []
    roster.start(names.append)
    roster.join()
    assert (names, roster.headcount().current) == (["model-0"], 0)


def test_a_thread_that_fails_is_gone_all_the_same_and_its_death_is_on_the_book():
    deaths = book()
    roster = Roster("model", deaths)

    def fail(name):
        raise ValueError(name)

    roster.start(fail)
    roster.join()
    assert (roster.headcount(), deaths.count) == (Headcount(current=0, peak=1, started=1), 1)


def test_whom_a_leaving_thread_starts_is_waited_for_too():
    roster, seen = Roster("model", book()), []

    def hand_on(name):
        seen.append(name)
        if len(seen) < 20:
            roster.start(hand_on)

    roster.start(hand_on)
    roster.join()
    assert (len(seen), [thread.name for thread in threading.enumerate() if thread.name.startswith("model-")]) == (
        20,
        [],
    )
