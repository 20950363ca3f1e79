"""Which number does a cell hold, in which unit, and is its comma a decimal mark?"""

from __future__ import annotations

import re
from collections.abc import Iterable

from perfkit.errors import ConfigError

SECONDS = {
    **dict.fromkeys(("ns", "nsec", "nanos", "nanoseconds", "纳秒"), 1e-9),
    **dict.fromkeys(("us", "µs", "μs", "usec", "usecs", "micros", "microseconds", "微秒"), 1e-6),
    **dict.fromkeys(("ms", "msec", "msecs", "millis", "milliseconds", "毫秒"), 1e-3),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds", "秒"), 1.0),
    **dict.fromkeys(("m", "min", "mins", "minutes", "分钟"), 60.0),
    **dict.fromkeys(("h", "hours", "小时"), 3600.0),
}
_MULTIPLES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "万": 1e4}
_NUMBER = re.compile(r"[-+]?(?:\d+(?:[ '\u00a0\u202f]\d{3}(?!\d))*(?:[.,]\d+)*|\.\d+)(?:e[-+]?\d+)?", re.IGNORECASE)
_GO_PART = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|μs|ms|s|m|h)")
_UNIT = re.compile(r"\s*([a-zµμ]+|[纳微毫]?秒|分钟|小时)?", re.IGNORECASE)
_GROUPED = re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+")
_COMMA = re.compile(r"[-+]?\d+,\d+")
_MOST = 1e18  # nothing that is measured here is larger
_ABSENT = {"", "-", "–", "—", "n/a", "[n/a]", "na", "nan", "-nan", "null", "none", "inf", "-inf"}


def duration_s(text: str, unit: str | None = None, decimal: str = ".") -> float | None:
    """A time in seconds: `1.36s`, `1m28s`, `458 usec`, `150` with `unit` from the heading; None if there is none."""
    word = text.strip()
    parts = _GO_PART.findall(word)
    if parts and "".join(number + name for number, name in parts) == word:
        whole_s = sum(in_seconds(float(number), name) for number, name in parts)
        return whole_s if whole_s <= _MOST else None
    match = _NUMBER.search(word)
    value = number(word, decimal)
    if value is None or match is None:
        return None
    own = _UNIT.match(word, match.end())
    name = ((own[1] or "").lower() if own else "") or unit or ""
    return in_seconds(value, name) if name in SECONDS else None


def in_seconds(value: float, unit: str) -> float:
    """A number of some unit; 3800 ms are 3.8 s to the last digit."""
    size = SECONDS[unit]
    return value / round(1 / size) if size < 1 else value * size


def number(text: str, decimal: str = ".") -> float | None:
    """The number in a cell such as `约10%`, `1.75k` or `1,234.5`; None where there is none."""
    word = text.strip()
    if word.lower() in _ABSENT or not (match := _NUMBER.search(word)):
        return None
    digits = re.sub(r"[' \u00a0\u202f]", "", match[0])
    digits = digits.replace(".", "").replace(",", ".") if decimal == "," else digits.replace(",", "")
    try:
        value = float(digits) * _multiple(word[match.end() :])
    except ValueError:
        return None
    return value if abs(value) <= _MOST else None


def has_unit(text: str) -> bool:
    """Whether a cell names a unit of time."""
    return duration_s(text) is not None


def decimal_mark(cells: Iterable[str]) -> str:
    """Whether `.` or `,` is the decimal mark of a table; raises ConfigError where the cells disagree."""
    marks = {mark for cell in cells if (mark := _mark_of(cell.strip()))}
    if len(marks) > 1:
        raise ConfigError("some numbers have a decimal comma and some a decimal point; write them all in one way")
    return marks.pop() if marks else "."


def _mark_of(cell: str) -> str | None:
    """The mark that a cell proves; None where it could be read in both ways."""
    match = _NUMBER.search(cell)
    text = match[0].rstrip(".,' ") if match else ""
    if "," in text and "." in text:
        return "," if text.rfind(",") > text.rfind(".") else "."
    if "," in text:
        return "," if _COMMA.fullmatch(text) and not _GROUPED.fullmatch(text) else None
    if "." in text and text.count(".") == 1:
        return None if re.fullmatch(r"[1-9]\d{0,2}\.\d{3}", text) else "."
    return None


def _multiple(rest: str) -> float:
    """`1.75k` and `2万` are counts; what follows as a word of its own is a unit."""
    match = re.match(r"\s*([kKMG万])(?![a-zA-Z])", rest)
    return _MULTIPLES[match[1].lower()] if match else 1.0
