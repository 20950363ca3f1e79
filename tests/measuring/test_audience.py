"""Is whoever was seated told how a measurement goes on, and nobody when the caller has a watch of its own?"""

import contextlib
import itertools

import pytest

from perfkit import ClosedLoop, measure, scan
from perfkit.measuring import audience
from perfkit.measuring.audience import Step, attending, seat


@pytest.fixture
def told(monkeypatch):
    """Every step that an audience of the test's own was told, with `opened` and `closed` around each measurement."""
    monkeypatch.setattr(audience, "_seated", audience._nobody)
    heard = []

    @contextlib.contextmanager
    def listening():
        heard.append("opened")
        yield heard.append
        heard.append("closed")

    seat(listening)
    return heard


def test_nobody_is_told_unless_seated():
    with audience._nobody() as tell:
        assert tell(Step(doing="x", done_s=0.0, total_s=1.0)) is None


def test_what_is_left_is_never_less_than_nothing():
    assert Step(doing="x", done_s=1.0, total_s=3.0).left_s == 2.0
    assert Step(doing="x", done_s=4.0, total_s=3.0).left_s == 0.0


def test_an_audience_is_opened_for_each_measurement(told):
    for number in range(2):
        with attending() as tell:
            tell(number)
    assert told == ["opened", 0, "closed", "opened", 1, "closed"]


def test_a_run_tells_how_far_its_load_is(told, server, tmp_path):
    measure(server, ClosedLoop(concurrency=1), seconds=0.3, out=tmp_path)
    first, *steps, last = told
    assert (first, last) == ("opened", "closed")
    assert {(step.doing, step.total_s) for step in steps} == {("measuring for 0.3 s", 0.7)}
    assert all(early.done_s <= late.done_s for early, late in itertools.pairwise(steps))


def test_a_watch_of_the_callers_own_is_told_instead(told, server, tmp_path):
    seen = []
    measure(server, ClosedLoop(concurrency=1), seconds=0.3, out=tmp_path, watch=lambda progress: seen.append(progress))
    assert told == []
    assert seen


def test_a_scan_tells_each_part(told, server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scan(server, "workers", [1, 2], load=ClosedLoop(concurrency=1), seconds=0.2)
    first, *steps, last = told
    assert (first, last) == ("opened", "closed")
    parts = [step.doing.partition(":")[0] for step in steps]
    assert list(dict.fromkeys(parts)) == [f"part {number} of 4" for number in (1, 2, 3, 4)]
    assert {step.doing.partition(": ")[2] for step in steps} == {"workers=1", "workers=2"}
