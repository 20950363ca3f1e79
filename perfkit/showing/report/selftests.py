"""Which self-tests did a point pass, and with which figures?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from perfkit.showing.plots.points import Point
from perfkit.units import ABSENT, format_duration, format_number, format_percent

_VERDICTS = {True: "passed", False: "failed", None: "not judged"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfTest:
    """One self-test of a point, as texts."""

    name: str
    verdict: str
    figure: str
    limit: str
    note: str


def self_tests(point: Point) -> tuple[SelfTest, ...]:
    """The point's own list of checks; a point without one shows the figures that it does carry, not judged."""
    checks = point.get("checks")
    if not checks:
        return tuple(_carried(point))
    return tuple(
        SelfTest(
            name=str(check["name"]),
            verdict=_VERDICTS[check.get("passed")],
            figure=format_number(check.get("figure")),
            limit=format_number(check.get("threshold")),
            note=". ".join(str(check[key]) for key in ("reason", "origin") if check.get(key)),
        )
        for check in checks
    )


def _carried(point: Point) -> Iterator[SelfTest]:
    generator = point.get("generator") or {}
    figures = (
        ("Little's law", format_percent(point.get("little_residual_ratio")), "|L - XW| / L"),
        (
            "generator lateness P99",
            format_duration(generator.get("lateness_p99_s")),
            "send after its scheduled instant",
        ),
        ("generator CPU", format_percent(generator.get("cpu_ratio")), "of the usable cores"),
    )
    for name, figure, note in figures:
        yield SelfTest(name=name, verdict=_VERDICTS[None], figure=figure, limit=ABSENT, note=note)


def summary(tests: tuple[SelfTest, ...]) -> str:
    """`17 passed, 1 failed, 2 not judged`, without the kinds that do not occur."""
    counts = {verdict: sum(test.verdict == verdict for test in tests) for verdict in _VERDICTS.values()}
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count) or "none recorded"
