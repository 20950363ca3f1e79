"""Is a plan checked, ordered and compared as it should be?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfkit.errors import ArchiveError, ConfigError
from perfkit.measuring.archive.scanplan import Part, differences, normalise, parts_of, require_same

WHERE = Path("scan/scan.json")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from("abc"), below, max_size=3),
    max_leaves=8,
)


def plan_of(points=2, order=((1, 0), (0, 1)), **others):
    return {"points": [{"varied": {"workers": n}} for n in range(points)], "order": order, **others}


def test_parts_come_in_order_of_execution():
    plan = normalise(plan_of(), WHERE)
    assert parts_of(plan) == (Part(0, 1), Part(0, 0), Part(1, 0), Part(1, 1))
    assert Part(3, 12).folder_name == "003-012"


@pytest.mark.parametrize(
    "changes",
    [
        {"points": []},
        {"points": [1, 2]},
        {"points": None},
        {"order": []},
        {"order": [[0]]},
        {"order": [[0, 0]]},
        {"order": [[0, 2]]},
        {"order": [[0, "1"]]},
        {"order": [[False, True]]},
        {"order": [0, 1]},
        {"order": None},
    ],
)
def test_a_plan_that_does_not_measure_each_point_once_a_round_is_refused(changes):
    with pytest.raises(ArchiveError, match=f"{next(iter(changes))} of the plan"):
        normalise(plan_of() | changes, WHERE)


def test_what_differs_between_two_plans_is_named():
    given_plan = normalise(plan_of(seed=1, note="x"), WHERE)
    stored = normalise(plan_of(points=3, order=[[0, 1, 2]], seed=2), WHERE)
    with pytest.raises(ConfigError) as caught:
        require_same(given_plan, stored, Path("scan"))
    assert str(caught.value) == (
        "scan holds a scan with another plan: note is 'x', there absent; order[0][0] is 1, there 0; "
        "order[0][1] is 0, there 1; order[0][2] is absent, there 2; order[1] is [0, 1], there absent; and more. "
        "Resume with the arguments it was started with, or start a new scan with another --out"
    )


@given(JSON, JSON)
def test_two_plans_differ_exactly_when_their_json_does(one, other):
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    found = list(differences(one, other))
    assert not list(differences(one, one))
    assert not (same and found)
    if one != other:
        assert found
