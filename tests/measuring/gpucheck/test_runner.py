"""Does a check that hangs, breaks or loses the device cost no more than its own lines?"""

import math
import threading

import pytest

from perfkit.measuring.gpucheck.check import Check, Effort
from perfkit.measuring.gpucheck.line import MUST, VERDICT, Claim, exit_code
from perfkit.measuring.gpucheck.runner import document, run_checks
from perfkit.serving.devices.device import DeviceLost

HOLDS = Claim("1.holds", MUST, "it holds")
SHOWS = Claim("1.shows", VERDICT, "it shows")


class Bench:
    label = "cuda"
    is_simulated = False

    def environment(self):
        return {"torch": "2"}


def check(number, measure, cap_s=5.0):
    def judge(found):
        return [HOLDS.judged(found, {"figure": 1}, "so it is"), SHOWS.recorded({}, "seen")]

    return Check(number=number, name="a check", cap_s=cap_s, claims=(HOLDS, SHOWS), measure=measure, judge=judge)


def broken(bench, effort):
    raise RuntimeError("CUDA error: misaligned address")


def lost(bench, effort):
    raise DeviceLost("the CUDA device is lost: unspecified launch failure")


def outcome(*checks, total_s=60.0):
    told = run_checks(Bench(), checks, lambda one: None, Effort(), total_s=total_s)
    lines = [line for one in told for line in one.lines]
    return [(line.status, line.reason) for line in lines], exit_code(lines)


def test_a_broken_check_fails_its_must_lines_and_the_next_one_runs():
    lines, code = outcome(check(1, broken), check(2, lambda bench, effort: True))
    reason = "RuntimeError: CUDA error: misaligned address"
    assert lines == [("fail", reason), ("skipped", reason), ("pass", "so it is"), ("recorded", "seen")]
    assert code == 1


def test_a_check_that_hangs_is_left_behind_at_its_cap():
    release = threading.Event()
    lines, code = outcome(check(1, lambda bench, effort: release.wait(), cap_s=0.05), check(2, lambda *_: True))
    release.set()
    assert [status for status, _ in lines] == ["fail", "skipped", "pass", "recorded"]
    assert "longer than its 0.05 s" in lines[0][1]
    assert code == 1


def test_after_a_lost_device_nothing_more_is_tried():
    lines, code = outcome(check(3, lost), check(4, lambda bench, effort: True))
    assert [status for status, _ in lines] == ["fail", "skipped", "skipped", "skipped"]
    assert lines[2][1] == "the device was lost in check 3"
    assert code == 1


def test_without_time_left_must_lines_stay_open():
    lines, code = outcome(check(1, lambda bench, effort: True), total_s=0.0)
    assert lines == [("skipped", "no time left of 0 s")] * 2
    assert code == 5


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ([HOLDS.judged(True, {}, "")], 0),
        ([HOLDS.judged(False, {}, "")], 1),
        ([HOLDS.skipped("not told")], 5),
        ([HOLDS.skipped("not built", is_excused=True)], 0),
        ([HOLDS.recorded({}, "the monitors do not work here")], 0),
        ([SHOWS.skipped("not told")], 0),
        ([HOLDS.judged(False, {}, ""), HOLDS.skipped("not told")], 1),
    ],
)
def test_the_exit_code_is_decided_by_must_lines_alone(lines, code):
    assert exit_code(lines) == code


def test_a_figure_that_is_no_number_is_absent_in_json():
    line = HOLDS.judged(False, {"ratio": math.inf, "rows": [{"x": math.nan, "n": 1}], "by_size": {8: 0.5}}, "NaN came")
    assert line.to_json(0.0)["figures"] == {"ratio": None, "rows": [{"x": None, "n": 1}], "by_size": {"8": 0.5}}


def test_the_document_names_what_was_left_behind():
    release = threading.Event()
    checks = [check(7, lambda bench, effort: release.wait(), cap_s=0.05), check(8, lambda bench, effort: True)]
    told = run_checks(Bench(), checks, lambda one: None, Effort())
    release.set()
    assert document(Bench(), told, 1.0)["left_behind"] == [7]


def test_the_document_is_the_contracts():
    told = run_checks(Bench(), [check(1, lambda bench, effort: True)], lambda one: None, Effort())
    whole = document(Bench(), told, 1.0)
    seconds = whole["checks"][0].pop("seconds")
    assert seconds >= 0.0
    assert whole["checks"][0] == {
        "id": "1.holds",
        "name": "it holds",
        "kind": "must",
        "status": "pass",
        "figures": {"figure": 1},
        "reason": "so it is",
    }
    assert {name: whole[name] for name in ("schema", "simulated", "device")} == {
        "schema": 1,
        "simulated": False,
        "device": "cuda",
    }
