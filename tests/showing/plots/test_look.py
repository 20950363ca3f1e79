"""Do labels stay text, and do axes get the unit that reads best?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfkit.showing.plots.look import latency_unit, lines, log_axis, plain
from perfkit.showing.plots.points import place_of, places


@given(st.text())
def test_no_label_can_open_a_tag_or_an_entity(label):
    text = plain(label)
    assert "<" not in text
    assert text.count("&") == sum(label.count(character) for character in "<>&")


def test_hover_lines_leave_out_what_is_empty():
    assert lines("a <b>", "", "c") == "a &lt;b&gt;<br>c"


@pytest.mark.parametrize(
    ("seconds", "unit"), [([12.0], "s"), ([0.2, None], "ms"), ([0.0004], "µs"), ([float("nan")], "µs"), ([], "µs")]
)
def test_the_axis_takes_the_unit_of_its_largest_latency(seconds, unit):
    assert latency_unit(seconds)[1] == unit


@given(st.lists(st.integers(1, 1000), min_size=2, unique=True), st.floats(0, 2000))
def test_any_number_finds_its_place_between_its_neighbours(settings, value):
    known = places(settings)
    place = place_of(value, known)
    below = [known[setting] for setting in settings if setting <= value]
    above = [known[setting] for setting in settings if setting >= value]
    assert max(below, default=min(known.values())) <= place <= min(above, default=max(known.values()))


def test_on_an_axis_of_factors_a_number_stands_by_its_factor():
    assert place_of(2.8284271247461903, places([1, 2, 4])) == pytest.approx(1.5)
    assert place_of(3, places([2, 4, 5])) == pytest.approx(0.5)


def test_a_logarithmic_axis_has_whole_numbers_at_its_ticks():
    axis = log_axis([0.3, None, 1500.0])
    assert axis["type"] == "log"
    ticks = dict(zip(axis["tickvals"], axis["ticktext"], strict=True))
    assert [ticks[value] for value in (0.5, 1, 20, 2000)] == ["0.5", "1", "20", "2,000"]
