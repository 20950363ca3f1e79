"""Which number does a cell hold?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfkit.errors import ConfigError
from perfkit.measuring.importers.cells import decimal_mark, duration_s, number


@pytest.mark.parametrize(
    ("text", "unit", "seconds"),
    [
        ("12.82ms", None, 0.01282),
        ("1.36s", None, 1.36),
        ("85 µs", None, 85e-6),
        ("458238 usec", None, 0.458238),
        ("1m28s", None, 88.0),
        ("1m0.5s", None, 60.5),
        ("150", "ms", 0.15),
        ("150ms", "s", 0.15),
        ("1,200 ms", None, 1.2),
        ("3 秒", None, 3.0),
        ("120毫秒", None, 0.12),
        ("150", None, None),
        ("N/A", "ms", None),
        ("", "ms", None),
        ("-nan", "ms", None),
        ("5 apples", None, None),
    ],
)
def test_a_time_takes_its_own_unit_before_that_of_the_heading(text, unit, seconds):
    assert duration_s(text, unit) == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    ("text", "decimal", "value"),
    [
        ("约10%", ".", 10.0),
        ("1.75k", ".", 1750.0),
        ("0.86k", ".", 860.0),
        ("1,234.5", ".", 1234.5),
        ("1.234,5", ",", 1234.5),
        ("1 234,5", ",", 1234.5),
        ("28,92", ",", 28.92),
        ("-3", ".", -3.0),
        ("1e3", ".", 1000.0),
        ("nan", ".", None),
        ("very good", ".", None),
    ],
)
def test_a_number_is_found_among_signs_and_words(text, decimal, value):
    assert number(text, decimal) == value


@given(st.lists(st.decimals(min_value=0, max_value=10**6, places=2), min_size=1))
def test_a_column_written_with_a_decimal_comma_reads_as_it_was(values):
    cells = [str(value).replace(".", ",") for value in values]
    assert decimal_mark(cells) == ","
    assert [number(cell, ",") for cell in cells] == pytest.approx([float(value) for value in values])


def test_grouped_thousands_alone_are_no_decimal_commas():
    assert decimal_mark(["1,234", "12,345"]) == "."
    assert decimal_mark(["0,234"]) == ","


def test_a_table_that_mixes_both_marks_is_refused():
    with pytest.raises(ConfigError, match="some numbers have a decimal comma and some a decimal point"):
        decimal_mark(["10,5", "10.5"])


@given(st.text(max_size=30))
def test_no_text_breaks_a_cell(text):
    for decimal in ".,":
        assert number(text, decimal) is None or isinstance(number(text, decimal), float)
        duration_s(text, "ms", decimal)
