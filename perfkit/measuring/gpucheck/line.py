"""What does one line of the check say, and how much does it count?

A *must* line passes or fails. A *verdict* line records what was found, whichever way it turned out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MUST = "must"
VERDICT = "verdict"
PASS = "pass"
FAIL = "fail"
RECORDED = "recorded"
SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One claim and what became of it. `is_excused`: skipped on purpose, so that it leaves no question open."""

    id: str
    name: str
    kind: str
    status: str
    figures: Mapping[str, Any]
    reason: str
    is_excused: bool = False

    def to_json(self, seconds: float) -> dict[str, Any]:
        """The line as it stands in the document; the seconds are those of its whole check."""
        return {
            "id": self.id,
            "name": self.name,
            "kind": self.kind,
            "status": self.status,
            "seconds": round(seconds, 3),
            "figures": _plain(self.figures),
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class Claim:
    """What a line is about, before anything was measured: an id such as `5.overlap`, its kind and its sentence."""

    id: str
    kind: str
    name: str

    def judged(self, is_met: bool, figures: Mapping[str, Any], reason: str) -> Line:
        """Passed or failed, with the figures that decided it."""
        return self._line(PASS if is_met else FAIL, figures, reason)

    def recorded(self, figures: Mapping[str, Any], verdict: str) -> Line:
        """A verdict, or a must line that cannot be judged here for a reason that the specification allows."""
        return self._line(RECORDED, figures, verdict)

    def skipped(self, reason: str, is_excused: bool = False) -> Line:
        """Not judged."""
        return self._line(SKIPPED, {}, reason, is_excused)

    def broken(self, reason: str) -> Line:
        """The check did not come to its end: a must line fails by that, a verdict is only missing."""
        return self._line(FAIL if self.kind == MUST else SKIPPED, {}, reason)

    def _line(self, status: str, figures: Mapping[str, Any], reason: str, is_excused: bool = False) -> Line:
        return Line(
            id=self.id,
            name=self.name,
            kind=self.kind,
            status=status,
            figures=figures,
            reason=reason,
            is_excused=is_excused,
        )


def _plain(value: Any) -> Any:
    """As JSON can have it: what is no finite number is absent."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def exit_code(lines: list[Line]) -> int:
    """1 when a must line failed, 5 when one is open (no time left, no way to tell), else 0."""
    musts = [line for line in lines if line.kind == MUST]
    if any(line.status == FAIL for line in musts):
        return 1
    return 5 if any(line.status == SKIPPED and not line.is_excused for line in musts) else 0
