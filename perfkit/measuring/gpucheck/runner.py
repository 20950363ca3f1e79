"""How do all checks run, so that one that hangs or breaks costs no more than its own lines?"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from perfkit.clock import NS_PER_S, REAL_CLOCK, Clock
from perfkit.measuring.gpucheck.bench import Bench
from perfkit.measuring.gpucheck.check import Check, Effort
from perfkit.measuring.gpucheck.line import Line
from perfkit.serving.devices.device import DeviceLost

TOTAL_S = 240.0
_MOST_TEXT = 500  # characters of an error's text


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What one check gave, and how long it took."""

    check: Check
    lines: tuple[Line, ...]
    seconds: float
    is_left_behind: bool = False  # it still runs, and may disturb the checks after it


Tell = Callable[[Told], None]


def run_checks(
    bench: Bench, checks: Sequence[Check], tell: Tell, effort: Effort, *, total_s: float = TOTAL_S
) -> list[Told]:
    """Run them in order and tell of each at once; nothing is raised but what `tell` raises."""
    clock = REAL_CLOCK
    deadline_ns = clock.now_ns() + round(total_s * NS_PER_S)
    told: list[Told] = []
    lost = ""
    for check in checks:
        left_s = (deadline_ns - clock.now_ns()) / NS_PER_S
        if lost or left_s <= 0:
            reason = lost or f"no time left of {total_s:g} s"
            one = Told(check=check, lines=tuple(claim.skipped(reason) for claim in check.claims), seconds=0.0)
        else:
            one, lost = _run(bench, check, effort, min(check.cap_s, left_s), clock)
        told.append(one)
        tell(one)
    return told


def _run(bench: Bench, check: Check, effort: Effort, cap_s: float, clock: Clock) -> tuple[Told, str]:
    """One check in a thread of its own, and why no further one makes sense, or nothing."""
    attempt = _Attempt(lambda: check.judge(check.measure(bench, effort)))
    started_ns = clock.now_ns()
    lines = attempt.wait(cap_s)
    seconds = (clock.now_ns() - started_ns) / NS_PER_S
    if lines is None:
        reason = attempt.reason or f"it took longer than its {cap_s:g} s and was left behind"
        lines = [claim.broken(reason) for claim in check.claims]
    lost = f"the device was lost in check {check.number}" if isinstance(attempt.error, DeviceLost) else ""
    is_left_behind = not attempt.is_over
    return Told(check=check, lines=tuple(lines), seconds=seconds, is_left_behind=is_left_behind), lost


class _Attempt:
    """A call in a daemon thread, which cannot be stopped but can be left behind."""

    def __init__(self, call: Callable[[], Sequence[Line]]) -> None:
        self._call = call
        self._lines: Sequence[Line] | None = None
        self.error: BaseException | None = None
        self.is_over = False

    @property
    def reason(self) -> str:
        """What went wrong; empty when nothing did so far."""
        return f"{type(self.error).__name__}: {self.error}"[:_MOST_TEXT] if self.error else ""

    def wait(self, cap_s: float) -> Sequence[Line] | None:
        """The lines, or None when there are none after so long."""
        thread = threading.Thread(target=self._body, name="gpucheck", daemon=True)
        thread.start()
        thread.join(cap_s)
        return self._lines

    def _body(self) -> None:
        try:
            self._lines = self._call()
        except BaseException as error:
            self.error = error
        finally:
            self.is_over = True


def document(bench: Bench, told: Sequence[Told], seconds: float) -> dict[str, Any]:
    """All of it as one JSON document."""
    return {
        **heading(bench),
        "seconds": round(seconds, 3),
        "left_behind": [one.check.number for one in told if one.is_left_behind],
        "checks": [line.to_json(one.seconds) for one in told for line in one.lines],
    }


def heading(bench: Bench) -> dict[str, Any]:
    """What every form of the results begins with."""
    return {
        "schema": 1,
        "simulated": bench.is_simulated,
        "device": bench.label,
        "environment": dict(bench.environment()),
    }
