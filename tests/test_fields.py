"""Is a settings record checked once, addressed by dotted names, and read from text by its own types?"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfkit import fields
from perfkit.errors import ConfigError
from perfkit.fields import Checked, field, named, nested


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Oven(Checked):
    """Nested settings."""

    heat_s: float = field(1.5, "how long", low=0.0, high=60.0)
    mode: str = field("fan", "how", choices=("fan", "grill"))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Guest(Checked):
    """An entry under a name that the user chooses."""

    age: int = field(30, "in years", low=0)
    leaves_s: float | None = field(None, "after how long; none = stays", live=False)
    oven: Oven = nested(Oven)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Kitchen(Checked):
    """Settings with every kind of field."""

    cooks: int = field(1, "how many", low=1, high=9)
    name: str = field("home", "what it is called", live=False)
    is_open: bool = field(True, "whether guests may come")
    closes_s: float | None = field(None, "after how long it closes; none = never", low=1.0)
    oven: Oven = nested(Oven)
    mode: str = field("quiet", "a bare name that two records share")
    guests: Mapping[str, Guest] = named(Guest)


KITCHENS = st.builds(
    Kitchen,
    cooks=st.integers(1, 9),
    name=st.text(max_size=5),
    is_open=st.booleans(),
    closes_s=st.none() | st.floats(1.0, 1e9),
    oven=st.builds(Oven, heat_s=st.floats(0, 60), mode=st.sampled_from(["fan", "grill"])),
    guests=st.dictionaries(
        st.sampled_from(["ann", "bob", "cy"]),
        st.builds(Guest, age=st.integers(0, 9), leaves_s=st.none() | st.floats(1, 9)),
    ),
)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"cooks": 0}, "cooks is 0; it takes a whole number from 1 to 9"),
        ({"cooks": 10}, "cooks is 10; it takes a whole number from 1 to 9"),
        ({"cooks": 1.5}, "cooks is 1.5; it takes a whole number from 1 to 9"),
        ({"cooks": True}, "cooks is True; it takes a whole number from 1 to 9"),
        ({"cooks": None}, "cooks has no value; it takes a whole number from 1 to 9"),
        ({"name": 3}, "name is 3; it takes a text"),
        ({"is_open": "yes"}, "is_open is 'yes'; it takes true or false"),
        ({"closes_s": 0.5}, "closes_s is 0.5; it takes a number, 1 or more"),
        ({"closes_s": math.nan}, "closes_s is nan; it takes a number, 1 or more"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_when_the_record_is_built(values, message):
    with pytest.raises(ConfigError) as refusal:
        Kitchen(**values)
    assert str(refusal.value) == message


def test_a_choice_lists_what_it_takes():
    with pytest.raises(ConfigError, match=r"^mode is 'steam'; it takes one of fan, grill$"):
        Oven(mode="steam")


def test_a_whole_number_will_do_for_a_number():
    assert Oven(heat_s=2).heat_s == 2


def test_the_leaves_are_listed_with_dotted_names_in_order():
    assert [name for name, _, _ in fields.leaves(Kitchen)] == [
        "cooks",
        "name",
        "is_open",
        "closes_s",
        "oven.heat_s",
        "oven.mode",
        "mode",
    ]


def test_a_bare_name_means_every_leaf_that_ends_in_it_unless_one_has_that_very_name():
    assert fields.matches("heat_s", Kitchen) == ["oven.heat_s"]
    assert fields.matches("mode", Kitchen) == ["mode"]
    assert fields.matches("oven.mode", Kitchen) == ["oven.mode"]
    assert fields.matches("oven", Kitchen) == []
    assert fields.matches("eat_s", Kitchen) == []


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("cooks", "3", 3),
        ("name", "none", "none"),
        ("is_open", "No", False),
        ("is_open", "1", True),
        ("closes_s", "None", None),
        ("closes_s", "", None),
        ("closes_s", "2e3", 2000.0),
        ("oven.heat_s", "0.25", 0.25),
    ],
)
def test_text_is_read_by_the_fields_own_type(name, text, value):
    assert fields.parse(name, text, Kitchen) == value


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("cooks", "many", "cooks is 'many'; it takes a whole number from 1 to 9"),
        ("cooks", "1.0", "cooks is '1.0'; it takes a whole number from 1 to 9"),
        ("is_open", "maybe", "is_open is 'maybe'; it takes true or false"),
        ("closes_s", "soon", "closes_s is 'soon'; it takes a number, 1 or more"),
    ],
)
def test_text_that_is_no_value_is_refused_with_what_the_field_takes(name, text, message):
    with pytest.raises(ConfigError) as refusal:
        fields.parse(name, text, Kitchen)
    assert str(refusal.value) == message


def test_changing_dotted_names_makes_a_new_record_and_checks_it():
    kitchen = Kitchen()
    changed = fields.replace(kitchen, {"oven.heat_s": 3.0, "oven.mode": "grill", "cooks": 2})
    assert changed == Kitchen(cooks=2, oven=Oven(heat_s=3.0, mode="grill"))
    assert kitchen == Kitchen()
    with pytest.raises(ConfigError, match="cooks is 0"):
        fields.replace(kitchen, {"cooks": 0})


def test_nested_values_may_be_given_as_tables_or_as_dotted_names():
    assert fields.flatten({"oven": {"mode": "grill"}, "oven.heat_s": 2, "cooks": 3}) == {
        "oven.mode": "grill",
        "oven.heat_s": 2,
        "cooks": 3,
    }


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"cook": 1}, "unknown setting cook; known here: closes_s, cooks, guests, is_open, mode, name, oven"),
        ({"oven": {"heat": 1}}, "unknown setting oven.heat; known here: heat_s, mode"),
        ({"oven": 3}, "oven is 3; it takes a table of settings"),
        ({"cooks": {"a": 1}}, "cooks is {'a': 1}; it takes a whole number from 1 to 9"),
    ],
)
def test_an_entry_that_is_not_known_is_named_with_its_place(values, message):
    with pytest.raises(ConfigError) as refusal:
        fields.from_nested(Kitchen, values)
    assert str(refusal.value) == message


def test_only_what_is_not_live_needs_a_restart():
    before, after = Kitchen(), Kitchen(name="away", cooks=2)
    assert fields.changes(before, after) == {"name": "away", "cooks": 2}
    assert fields.needs_restart(before, after) == ["name"]


@given(KITCHENS)
def test_nested_dicts_bring_a_record_back(kitchen):
    assert fields.from_nested(Kitchen, fields.to_nested(kitchen)) == kitchen


@given(KITCHENS, KITCHENS)
def test_the_changes_between_two_records_turn_the_one_into_the_other(before, after):
    assert fields.replace(before, fields.changes(before, after)) == after


@given(KITCHENS)
def test_every_value_that_is_written_as_text_is_read_back(kitchen):
    for name, hint, _ in fields.leaves(Kitchen):
        value = fields.get(kitchen, name)
        if hint is not str:
            assert fields.parse(name, str(value), Kitchen) == value


ANN = Kitchen(guests={"ann": Guest(age=5)})


def test_an_entry_of_a_named_table_comes_with_its_first_value_and_goes_with_none():
    assert fields.replace(Kitchen(), {"guests.ann.age": 5}) == ANN
    assert fields.replace(ANN, {"guests.ann.oven.mode": "grill"}).guests["ann"].oven.mode == "grill"
    assert fields.replace(Kitchen(), {"guests.bob": {}}) == Kitchen(guests={"bob": Guest()})
    assert fields.replace(ANN, {"guests.ann": None}) == Kitchen()
    assert ANN.guests == {"ann": Guest(age=5)}


def test_an_entry_of_a_named_table_is_found_and_read_by_its_dotted_name():
    assert fields.matches("guests.zoe.age", Kitchen) == ["guests.zoe.age"]
    assert fields.parse("guests.zoe.age", "7", Kitchen) == 7
    assert fields.parse("guests.zoe.oven.heat_s", "2", Kitchen) == 2.0
    assert fields.find("guests.zoe.size", Kitchen) is None
    assert fields.find("guests.zoe", Kitchen) is None
    assert (fields.get(ANN, "guests.ann.age"), fields.get(ANN, "guests.bob.age")) == (5, None)
    assert "guests.NAME.oven.heat_s" in fields.known_names(Kitchen)


@pytest.mark.parametrize(
    ("changes", "unknown"),
    [
        ({"guests.zoe.age": 1, "guests.zoe": None, "guests.ann": {}, "oven": {}, "guests": {}}, []),
        (
            {"guests.zoe.size": 1, "guests.ann": 3, "guests": None, "ovens": {}},
            "guests guests.ann guests.zoe.size ovens",
        ),
    ],
)
def test_what_nothing_is_known_by_is_told(changes, unknown):
    assert fields.unknown(changes, Kitchen) == (unknown and unknown.split())


def test_an_entry_of_a_named_table_is_checked_as_any_record():
    with pytest.raises(ConfigError, match=r"^age is -1; it takes a whole number, 0 or more$"):
        fields.replace(Kitchen(), {"guests.ann.age": -1})
    with pytest.raises(ConfigError, match=r"^unknown setting guests.ann.size; known here: age, leaves_s, oven$"):
        fields.from_nested(Kitchen, {"guests": {"ann": {"size": 1}}})


def test_an_empty_table_stays_when_tables_are_flattened():
    assert fields.flatten({"guests": {"bob": {}}}) == {"guests.bob": {}}


def test_an_entry_of_a_named_table_needs_a_restart_as_its_fields_say():
    assert fields.needs_restart(ANN, fields.replace(ANN, {"guests.ann.leaves_s": 3.0})) == ["guests.ann.leaves_s"]
    assert fields.needs_restart(ANN, Kitchen()) == []
