"""Which requests does a schedule file ask for, and when? Instants with what each sends, read before the start.

The file is CSV with a header, or one JSON object a line, with a column `at` and, where wanted, `payload` (a
number of the payload file's lines, from 0, as run folders count them) and `lane`. Instants are in one stated
unit, counted from the start of the load, or calendar or monotonic instants of which the first is the start.
Their order in the file does not matter: a log is often written as requests end.
"""

from __future__ import annotations

import csv
import dataclasses
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from perfkit.clock import NS_PER_S
from perfkit.errors import ConfigError
from perfkit.fields import Checked, field

UNITS_NS = {"s": NS_PER_S, "ms": 1_000_000, "us": 1_000, "ns": 1}
ORIGINS = ("start", "first")
COLUMNS = ("at", "payload", "lane")
MOST_ROWS = 10_000_000
_LONGEST_S = 7 * 86_400.0  # a schedule that starts a week late is an epoch that was not said to be one


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Replay(Checked):
    """A schedule file, and how to read its instants."""

    file: str | None = field(None, "CSV or JSON lines with a column at, and payload and lane where wanted")
    unit: str = field("s", "unit of the column at", choices=tuple(UNITS_NS))
    origin: str = field(
        "start", "start = instants count from the start; first = from the file's first, as of an epoch", choices=ORIGINS
    )
    speed: float = field(1.0, "2 = everything in half the time", low=0.001, high=1000.0)


@dataclasses.dataclass(frozen=True, slots=True)
class Due:
    """One line of a schedule."""

    at_ns: int
    payload: int | None
    lane: str | None


def read_schedule(replay: Replay) -> list[Due]:
    """The lines of a schedule file in the order of their instants; raises ConfigError that names the line."""
    if replay.file is None:
        raise ConfigError("a replay needs a schedule file: --set replay.file=FILE, CSV or JSON lines with a column at")
    path = Path(replay.file)
    rows = [_checked(f"line {number} of schedule file {path}", row) for number, row in _rows(path)]
    if not rows:
        raise ConfigError(f"schedule file {path} holds no line; it takes one for each request, with a column at")
    scale = UNITS_NS[replay.unit]
    first = min(at for at, _, _ in rows) if replay.origin == "first" else 0
    _check_start(path, min(at for at, _, _ in rows) - first, replay)
    found = [Due(round((at - first) * scale / replay.speed), payload, lane) for at, payload, lane in rows]
    _check_whole(path, found)
    return sorted(found, key=lambda due: due.at_ns)


def length_s(schedule: list[Due]) -> float:
    """From the start to just after the last instant."""
    return (schedule[-1].at_ns + 1) / NS_PER_S


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Line number and columns of every line."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            start = file.read(1)
            file.seek(0)
            found = _json_rows(path, file) if start == "{" else _csv_rows(path, file)
            for count, row in enumerate(found):
                if count >= MOST_ROWS:
                    raise ConfigError(f"schedule file {path} has more than {MOST_ROWS:,} lines; split it")
                yield row
    except OSError as error:
        raise ConfigError(f"cannot read schedule file {path}: {error.strerror}; give CSV or JSON lines") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"schedule file {path} is no UTF-8 text ({error.reason}); give CSV or JSON lines") from error


def _csv_rows(path: Path, file: Any) -> Iterator[tuple[int, Mapping[str, Any]]]:
    reader = csv.DictReader(file, restkey="", skipinitialspace=True)
    names = [name.strip() for name in reader.fieldnames or ()]
    if "at" not in names:
        raise ConfigError(
            f"schedule file {path} has no column at; its first line is {','.join(names)!r:.80}, "
            "which takes at, and payload and lane where wanted"
        )
    reader.fieldnames = names
    try:
        for row in reader:
            yield reader.line_num, row
    except csv.Error as error:
        raise ConfigError(f"line {reader.line_num} of schedule file {path} is not CSV: {error}") from error


def _json_rows(path: Path, file: Any) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise ConfigError(f"line {number} of schedule file {path} is not JSON ({error})") from error
        if not isinstance(row, dict):
            raise ConfigError(f"line {number} of schedule file {path} is {line.strip()!r:.60}; it takes an object")
        yield number, row


def _checked(where: str, row: Mapping[str, Any]) -> tuple[float | int, int | None, str | None]:
    at = _number(row.get("at"))
    if at is None:
        raise ConfigError(f"{where}: at is {row.get('at')!r}; it takes an instant as a number")
    lane = row.get("lane") or None
    if lane is not None and not isinstance(lane, str):
        raise ConfigError(f"{where}: lane is {lane!r}; it takes a name")
    return at, _payload(where, row.get("payload")), lane


def _payload(where: str, value: Any) -> int | None:
    if value is None or value == "":
        return None
    number = _number(value)
    if not isinstance(number, int) or number < 0:
        raise ConfigError(f"{where}: payload is {value!r}; it takes a number of the payload file's lines, from 0")
    return number


def _number(value: Any) -> float | int | None:
    """Whole numbers stay whole: a float does not hold the nanoseconds of an epoch."""
    if isinstance(value, bool) or value is None:
        return None
    for kind in (int, float):
        try:
            found = kind(value) if isinstance(value, str | kind) else None
        except ValueError:
            continue
        if found is not None and math.isfinite(found):
            return found
    return None


def _check_start(path: Path, start: float, replay: Replay) -> None:
    if start < 0:
        raise ConfigError(
            f"schedule file {path} has an instant {start:g} {replay.unit} before the start; "
            "instants count from the start, from 0 on (or --set replay.origin=first)"
        )
    if start * UNITS_NS[replay.unit] / NS_PER_S > _LONGEST_S:
        raise ConfigError(
            f"schedule file {path} starts {start:g} {replay.unit} after the start of the load, which looks like an "
            "epoch or another unit; --set replay.origin=first, or replay.unit"
        )


def _check_whole(path: Path, found: list[Due]) -> None:
    """A column of payloads or lanes is filled in every line or in none, so that no line is guessed."""
    for name in ("payload", "lane"):
        given = sum(getattr(due, name) is not None for due in found)
        if given not in (0, len(found)):
            raise ConfigError(
                f"schedule file {path} names a {name} in {given} of {len(found)} lines; name one in each, or in none"
            )
