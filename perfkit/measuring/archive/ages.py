"""How long ago is `30d`, and which moment is `2026-11-01`? Ages and dates as a person types them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from perfkit.errors import ConfigError

_AGE = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def read_age(text: str) -> timedelta:
    """The length of time in a text such as 90m, 12h, 30d or 2w; raises ConfigError."""
    found = _AGE.fullmatch(text.strip())
    try:
        if found is not None:
            return timedelta(**{_UNITS[found[2]]: float(found[1])})
    except OverflowError:
        pass
    raise ConfigError(f"{text!r} is no age; write a number and s, m, h, d or w, as in 12h or 30d")


def read_moment(text: str, now: datetime) -> datetime:
    """A date, a moment (without a zone: in UTC), or the moment that an age ago was; raises ConfigError."""
    if _AGE.fullmatch(text.strip()):
        return before(now, read_age(text))
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ConfigError(f"{text!r} is no moment; write 2026-11-01, 2026-11-01T09:30, or an age as in 7d") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def before(now: datetime, age: timedelta) -> datetime:
    """The moment an age ago; the first there is for an age beyond all calendars."""
    try:
        return now - age
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)
