"""Who is told how a measurement goes on when its caller named nobody? Whoever a face has seated; else nobody."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What is running, and how far the whole is."""

    doing: str
    done_s: float
    total_s: float

    @property
    def left_s(self) -> float:
        """By the plan."""
        return max(0.0, self.total_s - self.done_s)


Tell = Callable[[Step], None]
Audience = Callable[[], AbstractContextManager[Tell]]
"""Opened once for each measurement; what it gives is told every step, a few times a second."""


@contextlib.contextmanager
def _nobody() -> Iterator[Tell]:
    yield lambda step: None


_seated: Audience = _nobody


def seat(audience: Audience) -> None:
    """From now on this audience is told."""
    global _seated
    _seated = audience


def attending() -> AbstractContextManager[Tell]:
    """The audience of one measurement, for a `with` block."""
    return _seated()
