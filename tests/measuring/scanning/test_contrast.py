"""Are all sides of a contrast measured as points of one scan, and given back as one curve each?"""

import pytest

from perfkit.errors import ConfigError
from perfkit.measuring.load.loops import ClosedLoop
from perfkit.measuring.scanning.contrast import Question, contrast

SIDES = {"alone": {"workers": 1}, "batched": {"workers": 1, "batch.max_size": 8}}


def asked(**more):
    given = {"model": "noop", "sides": SIDES, "name": "concurrency", "values": [1, 8], "load": ClosedLoop()}
    return Question(**{**given, "seconds": 0.4, **more})


def test_every_side_is_measured_at_every_value_in_interleaved_rounds():
    plan = asked().plan()
    cells = [(point.varied["side"], point.varied["concurrency"]) for point in plan.points]
    assert cells == [("alone", 1), ("alone", 8), ("batched", 1), ("batched", 8)]
    assert [(point.settings.batch.max_size, point.load.concurrency) for point in plan.points] == [
        (1, 1),
        (1, 8),
        (8, 1),
        (8, 8),
    ]
    assert [sorted(part) for part in plan.order] == [[0, 1, 2, 3]] * 2


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"sides": {}}, "no side"),
        ({"sides": {"one": {"nonsense": 1}}}, "unknown setting nonsense"),
        ({"name": "nonsense"}, "unknown setting nonsense"),
        ({"values": []}, "name no value"),
    ],
)
def test_a_question_without_sense_is_refused(wrong, says):
    with pytest.raises(ConfigError, match=says):
        asked(**wrong).plan()


def test_each_side_is_one_curve_over_the_varied_field(tmp_path):
    found = contrast(asked(rounds=1, seconds=0.2), tmp_path / "scan")
    assert {label: [point["varied"] for point in points] for label, points in found.series.items()} == {
        "alone": [{"concurrency": 1}, {"concurrency": 8}],
        "batched": [{"concurrency": 1}, {"concurrency": 8}],
    }
    assert [point["settings"]["batch"]["max_size"] for point in found.series["batched"]] == [8, 8]
