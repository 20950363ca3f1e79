"""How does a point's certificate read? As a badge of a few words that opens to every entry, the same in every page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from perfkit.showing.plots.points import Point
from perfkit.units import ABSENT, format_bytes, format_duration, format_number, format_percent, format_rate

_FOLDER = Path(__file__).parent
_UNITS = {"_s": format_duration, "_bytes": format_bytes, "_ratio": format_percent, "_rps": format_rate}
_LEAST_RATIO = 1e-6  # less is the rounding of a sum, and no figure
_STATUSES = ("fail", "pass", "recorded", "not applicable")
_OLD_VERDICTS = {True: "pass", False: "fail", None: "not applicable"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One entry of a certificate, as texts."""

    name: str
    status: str
    figures: str
    limit: str
    costs: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Badge:
    """A certificate as texts: its grade, how many entries went how, and the entries."""

    grade: str
    summary: str
    lines: tuple[Line, ...]


def badge_of(point: Point) -> Badge:
    """The point's certificate; a point from before there was one shows its self-tests, or the figures it carries."""
    certificate = point.get("certificate")
    if certificate:
        lines = tuple(map(_line, certificate["entries"]))
    else:
        lines = tuple(map(_old_line, point.get("checks") or ())) or tuple(_carried(point))
    return Badge(grade=str(point["grade"]), summary=_summary(lines), lines=lines)


def _line(entry: Mapping[str, Any]) -> Line:
    name, figures = str(entry["name"]), entry["figures"]
    first = next(iter(figures), "")
    reason = str(entry["reason"]).removeprefix(f"{name}: ")
    return Line(
        name=name,
        status=str(entry["status"]),
        figures=", ".join(_figure(key, value) for key, value in figures.items() if value is not None),
        limit=_text(first, entry["threshold"]),
        costs="" if entry["costs"] == "nothing" else str(entry["costs"]),
        note=_note(reason, entry["origin"]),
    )


def _old_line(check: Mapping[str, Any]) -> Line:
    return Line(
        name=str(check["name"]),
        status=_OLD_VERDICTS[check.get("passed")],
        figures=format_number(check.get("figure")),
        limit=format_number(check.get("threshold")),
        costs="void",
        note=_note(check.get("reason"), check.get("origin")),
    )


def _carried(point: Point) -> Iterator[Line]:
    generator = point.get("generator") or {}
    carried = (
        ("Little", format_percent(point.get("little_residual_ratio")), "|L - XW| / L"),
        ("generator lateness", format_duration(generator.get("lateness_p99_s")), "P99, send after schedule"),
        ("generator CPU", format_percent(generator.get("cpu_ratio")), "of the usable cores"),
    )
    for name, figure, note in carried:
        yield Line(name=name, status="recorded", figures=figure, limit=ABSENT, costs="", note=note)


def _figure(name: str, value: Any) -> str:
    unit = next((ending for ending in _UNITS if name.endswith(ending)), "")
    return f"{name.removesuffix(unit).replace('_', ' ')} {_text(name, value)}".strip()


def _text(name: str, value: Any) -> str:
    """A figure with the unit of its name's ending."""
    if value is None:
        return ABSENT
    if not isinstance(value, int | float):
        return str(value)
    if name.endswith("_ratio") and 0 < abs(value) < _LEAST_RATIO:
        return f"below {format_percent(_LEAST_RATIO)}"
    text = next((unit for ending, unit in _UNITS.items() if name.endswith(ending)), None)
    if text is not None:
        return text(value)
    return str(value) if isinstance(value, int) else format_number(value)


def _note(reason: Any, origin: Any) -> str:
    return ". ".join(str(part) for part in (reason, origin) if part)


def _summary(lines: tuple[Line, ...]) -> str:
    """`1 fail, 30 pass, 6 recorded`, without what does not occur."""
    counts = {status: sum(line.status == status for line in lines) for status in _STATUSES}
    return ", ".join(f"{count} {status}" for status, count in counts.items() if count)


@cache
def _template() -> jinja2.Template:
    # autoescape: names of models, settings and services may stand in a reason
    text = (_FOLDER / "badge.html.j2").read_text("utf-8")
    return jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(text)


def badge_html(badge: Badge) -> Markup:
    """The badge as a piece of a page; its looks are in `badge_style`."""
    return Markup(_template().render(badge=badge))


@cache
def badge_style() -> Markup:
    """The badge's style sheet, for light pages and dark ones."""
    return Markup((_FOLDER / "badge.css").read_text("utf-8"))
