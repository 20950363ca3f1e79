"""Do spans on one line never overlap, on as few lines as possible?"""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from perfkit.measuring.exporting.lanes import assign_lanes

SPANS = st.lists(st.tuples(st.integers(0, 50), st.integers(1, 20)).map(lambda one: (one[0], one[0] + one[1])))


def test_a_span_takes_the_lowest_line_that_is_free():
    assert assign_lanes([(0, 4), (1, 3), (3, 5), (4, 6), (2, 9)]) == [0, 1, 1, 0, 2]
    assert assign_lanes([]) == []


@given(SPANS)
def test_no_two_spans_of_a_line_overlap_and_no_line_is_wasted(spans):
    lanes = assign_lanes(spans)
    for lane in set(lanes):
        inside = sorted(span for span, its in zip(spans, lanes, strict=True) if its == lane)
        assert all(one[1] <= other[0] for one, other in itertools.pairwise(inside))
    at_once = max((sum(start <= at < end for start, end in spans) for at, _ in spans), default=0)
    assert max(lanes, default=-1) + 1 == at_once
