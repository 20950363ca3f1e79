"""4, its second part: does a checker of the order between streams find anything unordered?

Last of all checks: torch's sanitizer stays in the process once it is on, and slows it down.
"""

from __future__ import annotations

from dataclasses import dataclass

from perfkit.measuring.gpucheck.bench import Bench
from perfkit.measuring.gpucheck.check import Check, Effort
from perfkit.measuring.gpucheck.line import MUST, Claim, Line

ORDER = Claim("4.sanitizer", MUST, "no two streams touch the same memory without an event between them")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What the checker reported."""

    requests: int
    reports: list[str]


def measure(bench: Bench, effort: Effort) -> Figures:
    """A few requests under the checker."""
    requests = effort.count(20)
    return Figures(requests=requests, reports=bench.unordered_uses(requests))


def judge(found: Figures) -> list[Line]:
    """It may report nothing."""
    first = f"; the first: {found.reports[0]}" if found.reports else ""
    return [
        ORDER.judged(
            not found.reports,
            {"requests": found.requests, "reports": len(found.reports)},
            f"{len(found.reports)} reports in {found.requests} requests{first}",
        )
    ]


CHECK = Check(number=4, name="order between streams", cap_s=20.0, claims=(ORDER,), measure=measure, judge=judge)
