"""Is an outpost always manned, and when does it stop making others wait? With children that die on command."""

from __future__ import annotations

import threading

import pytest

from perfkit.clock import NS_PER_S
from perfkit.serving.scheduling.restarts import LOOP_DEATHS
from perfkit.serving.server.elsewhere import outpost as module
from perfkit.serving.server.elsewhere.child import ChildDied, ChildSpec, Hello
from perfkit.serving.server.elsewhere.outpost import Outpost
from perfkit.settings.server import ServerSettings

SPEC = ChildSpec(settings=ServerSettings(model="noop"), intra_op_threads=1)


class Family:
    """Makes children in place of real ones, and knows them all."""

    def __init__(self):
        self.children = []
        self.loads_slowly = False
        self.answers = {}  # of the child with that number; else it echoes

    def __call__(self, spec):
        self.children.append(ScriptedChild(self, len(self.children)))
        return self.children[-1]

    @property
    def last(self):
        return self.children[-1]


class ScriptedChild:
    def __init__(self, family, number):
        self.pid = 1000 + number
        self.is_ended = threading.Event()
        self._family = family
        self._number = number

    def greet(self):
        if self._family.loads_slowly:
            self.is_ended.wait()
            raise EOFError
        return Hello(pid=self.pid, effective_threads=1, cpus=(0,))

    def ask(self, message):
        answer = self._family.answers.get(self._number, message)
        if isinstance(answer, Exception):
            self.is_ended.set()
            raise answer
        return answer

    def wait(self):
        self.is_ended.wait()
        return -9

    def hang_up(self):
        self.is_ended.set()

    def kill(self):
        self.is_ended.set()


@pytest.fixture
def family(monkeypatch):
    family = Family()
    monkeypatch.setattr(module, "Child", family)
    return family


@pytest.fixture
def outpost(family, clock):
    outpost = Outpost("post-0", SPEC, clock)
    outpost.start()
    outpost.ready.result(10)
    yield outpost
    outpost.close()


def test_a_call_that_a_child_dies_with_is_not_tried_again(outpost, family):
    family.answers[0] = EOFError()
    with pytest.raises(ChildDied, match="post-0, process 1000, ended while it had the request"):
        outpost.ask(b"x")
    assert (outpost.ask(b"y"), len(family.children)) == (b"y", 2)


@pytest.mark.parametrize("error", [BrokenPipeError(), ConnectionResetError()])
def test_a_call_that_no_child_has_read_goes_to_the_successor(outpost, family, error):
    family.answers[0] = error
    assert (outpost.ask(b"x"), len(family.children)) == (b"x", 2)


def test_an_idle_child_that_dies_is_replaced_without_being_asked(outpost, family, eventually):
    assert outpost.stats() == {"name": "post-0", "pid": 1000, "effective_threads": 1, "cpus": (0,), "deaths": 0}
    family.last.is_ended.set()
    eventually(lambda: outpost.stats()["pid"] == 1001)
    assert outpost.deaths == 1


def test_after_too_many_deaths_calls_are_refused_until_a_child_lives_again(outpost, family, clock, eventually):
    for number in range(LOOP_DEATHS - 1):
        eventually(lambda: outpost.is_manned)
        family.last.is_ended.set()
        eventually(lambda number=number: outpost.deaths == number + 1)
        eventually(lambda: _moved(clock, outpost))
    family.last.is_ended.set()  # the fifth within a minute
    eventually(lambda: outpost.deaths == LOOP_DEATHS)
    with pytest.raises(ChildDied, match="post-0 has no process: its processes end one after the other"):
        outpost.ask(b"x")
    assert outpost.stats()["pid"] is None
    eventually(lambda: _moved(clock, outpost))
    assert outpost.ask(b"x") == b"x"


def _moved(clock, outpost):
    """Time goes on, a second at a look; whether the outpost is manned."""
    clock.advance(NS_PER_S)
    return outpost.is_manned


def test_closing_does_not_wait_for_a_successor_that_pauses_or_still_loads(family, clock, eventually):
    for loads_slowly in (False, True):
        outpost = Outpost("post-0", SPEC, clock)
        outpost.start()
        outpost.ready.result(10)
        family.loads_slowly = loads_slowly
        deaths_before_a_pause = 1 if loads_slowly else 2
        for number in range(deaths_before_a_pause):
            family.last.is_ended.set()
            eventually(lambda number=number, outpost=outpost: outpost.deaths == number + 1)
            if not loads_slowly and not number:
                eventually(lambda outpost=outpost: outpost.is_manned)
        outpost.close()
        assert not outpost._watcher.is_alive()
        family.loads_slowly = False


def test_a_first_child_that_cannot_load_is_told_to_the_owner(family, clock):
    family.loads_slowly = True
    outpost = Outpost("post-0", SPEC, clock)
    outpost.start()
    outpost.close()
    assert isinstance(outpost.ready.exception(10), EOFError)
