"""Does every number become the text that a person expects?"""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfkit import units

NUMBERS = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e12, max_value=1e12)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1234.5, "1,234"),
        (0.01234, "0.0123"),
        (0, "0"),
        (-0.5, "-0.500"),
        (12.345, "12.3"),
        (999.6, "1,000"),
        (1_234_567, "1,234,567"),
        (math.inf, "∞"),
        (-math.inf, "-∞"),
        (None, "–"),
        (math.nan, "–"),
    ],
)
def test_numbers_have_three_digits_and_no_exponent(value, text):
    assert units.format_number(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0412, "41.2 ms"),
        (0.2, "200 ms"),
        (1.5, "1.50 s"),
        (0.000_001_5, "1.50 µs"),
        (3e-10, "0.300 ns"),
        (119.6, "120 s"),
        (125, "2 min 5 s"),
        (0, "0 s"),
        (-0.002, "-2.00 ms"),
        (math.inf, "∞"),
        (None, "–"),
        (math.nan, "–"),
    ],
)
def test_durations_take_the_unit_that_leaves_a_number_one_can_read(seconds, text):
    assert units.format_duration(seconds) == text


def test_rates_bytes_and_ratios_carry_their_units():
    assert units.format_rate(15.72) == "15.7 req/s"
    assert units.format_rate(3, "B/s") == "3.00 B/s"
    assert units.format_quantity(0.0412, "J") == "41.2 mJ"
    assert units.format_quantity(1.98e9, "Hz") == "1.98 GHz"
    assert [units.format_quantity(watts, "W") for watts in (650.0, 0.0)] == ["650 W", "0 W"]
    assert units.format_quantity(None, "J") == units.ABSENT
    assert [units.format_bytes(count) for count in (0, 512, 1536, 3 << 20, 5 << 30)] == [
        "0 B",
        "512 B",
        "1.50 KiB",
        "3.00 MiB",
        "5.00 GiB",
    ]
    assert [units.format_percent(ratio) for ratio in (0.125, 1, 0)] == ["12.5 %", "100 %", "0 %"]


@pytest.mark.parametrize("form", [units.format_rate, units.format_bytes, units.format_percent])
def test_what_is_absent_is_a_dash_and_never_a_zero(form):
    assert [form(None), form(math.nan)] == ["–", "–"]


def test_an_interval_writes_a_shared_unit_once():
    assert units.format_interval("41.2 ms", "47.9 ms") == "41.2 to 47.9 ms"
    assert units.format_interval("900 ms", "1.10 s") == "900 ms to 1.10 s"
    assert units.format_interval("2 min 5 s", "3 min 1 s") == "2 min 5 s to 3 min 1 s"
    assert units.format_interval("3", "4") == "3 to 4"


@given(NUMBERS)
def test_the_text_of_a_number_is_within_half_a_unit_of_its_third_digit(value):
    text = units.format_number(value)
    assert "e" not in text
    assert float(text.replace(",", "")) == pytest.approx(value, rel=0.005 + 1e-9, abs=1e-300)


@given(NUMBERS.map(abs))
def test_a_longer_duration_never_reads_shorter(seconds):
    sizes = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}

    def read(text):
        if "min" in text:
            minutes, rest = text.removesuffix(" s").split(" min ")
            return 60 * int(minutes) + int(rest)
        number, unit = text.split(" ")
        return float(number.replace(",", "")) * sizes[unit]

    assert read(units.format_duration(seconds)) <= read(units.format_duration(seconds * 1.02)) + 1e-12
