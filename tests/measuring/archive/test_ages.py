"""Is an age or a moment understood as a person means it?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from perfkit.errors import ConfigError
from perfkit.measuring.archive.ages import before, read_age, read_moment

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def test_an_age_is_a_number_and_its_unit():
    texts = ("90m", "12h", "1.5d", "2w", " 30 s ")
    lengths = [
        timedelta(minutes=90),
        timedelta(hours=12),
        timedelta(days=1.5),
        timedelta(weeks=2),
        timedelta(seconds=30),
    ]
    assert list(map(read_age, texts)) == lengths


@pytest.mark.parametrize("text", ["", "30", "d", "-3d", "3 months", "1e3d", "9" * 400 + "d"])
def test_what_is_no_age_is_refused_with_an_example(text):
    with pytest.raises(ConfigError, match=r"is no age; write .* as in 12h or 30d"):
        read_age(text)


def test_a_moment_is_a_date_a_moment_or_an_age_before_now():
    assert read_moment("2026-11-01", NOW) == datetime(2026, 11, 1, tzinfo=UTC)
    assert read_moment("2026-11-01T09:30+02:00", NOW) == datetime(2026, 11, 1, 7, 30, tzinfo=UTC)
    assert read_moment("7d", NOW) == datetime(2026, 11, 23, 12, tzinfo=UTC)
    with pytest.raises(ConfigError, match="'soon' is no moment"):
        read_moment("soon", NOW)


def test_an_age_beyond_all_calendars_is_the_first_moment():
    assert before(NOW, timedelta(days=999_999)) == datetime.min.replace(tzinfo=UTC)
