"""What does a self-test say? Passed, failed, or not judged, with the figure that it looked at."""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One self-test. `passed` is None when the run lacks what the test needs; `reason` then says what.

    `threshold` is the limit that `figure` was held against and `origin` where the limit comes from.
    """

    name: str
    passed: bool | None
    figure: float | None
    threshold: float | None
    origin: str
    reason: str

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return dataclasses.asdict(self)


def not_judged(name: str, threshold: float | None, origin: str, missing: str) -> Check:
    """A test that the run cannot take."""
    return Check(name=name, passed=None, figure=None, threshold=threshold, origin=origin, reason=missing)


def at_most(name: str, figure: float, threshold: float, origin: str, complaint: str) -> Check:
    """Passes when the figure does not exceed the threshold; else `complaint` is the reason."""
    passed = bool(figure <= threshold)
    reason = "" if passed else complaint
    return Check(name=name, passed=passed, figure=float(figure), threshold=threshold, origin=origin, reason=reason)
