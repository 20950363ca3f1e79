"""Is the model worth asking at present? A circuit breaker, as a pure state machine.

*Closed*: requests pass, and the last `window` outcomes are remembered; when at least `least` are
known and the failed share reaches `failure_ratio`, it opens. *Open*: nothing passes for `open_ns`.
*Half-open*: exactly `probes` requests pass; when all of them succeed it closes, when one fails it
opens again (Nygard, Release It!, 2007).

Every permit must be concluded once: `succeeded`, `failed`, or `abandoned` when the outcome says
nothing about the model (the client left). A permit belongs to the era in which it was given, and an
era ends with each change of state: what a request of an earlier era brings home late changes nothing.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from enum import Enum

from perfkit.clock import NS_PER_S
from perfkit.serving.scheduling.decisions import Rejected


class BreakerState(Enum):
    """Whether requests pass: all, none, or a few to try."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BreakerRule:
    """When to open, for how long, and how many probes must succeed before it closes."""

    failure_ratio: float
    window: int
    least: int
    open_ns: int
    probes: int


class Breaker:
    """Circuit breaker over counted outcomes. Not thread-safe."""

    __slots__ = ("_era", "_failures", "_open_until_ns", "_outcomes", "_probes_ok", "_probes_out", "_rule", "_state")

    def __init__(self, rule: BreakerRule) -> None:
        self._rule = rule
        self._era = 0
        self._open_until_ns = 0
        self._enter(BreakerState.CLOSED)

    def state(self, now_ns: int) -> BreakerState:
        """The state at this instant; an open breaker is half-open as soon as its time is over."""
        if self._state is BreakerState.OPEN and now_ns >= self._open_until_ns:
            self._enter(BreakerState.HALF_OPEN)
        return self._state

    def ask(self, now_ns: int) -> int | Rejected:
        """A permit to pass, or why not. Each permit must be concluded."""
        state = self.state(now_ns)
        if state is BreakerState.OPEN:
            return self.refusal(now_ns)
        if state is BreakerState.HALF_OPEN:
            if self._probes_out + self._probes_ok >= self._rule.probes:
                return self.refusal(now_ns)
            self._probes_out += 1
        return self._era

    def refusal(self, now_ns: int) -> Rejected:
        """What a request that does not pass is told."""
        # While probes are out it may soon be closed or be open for as long again; the longer time is told.
        wait_ns = self._open_until_ns - now_ns if self._state is BreakerState.OPEN else self._rule.open_ns
        return Rejected(reason="breaker_open", retry_after_s=wait_ns / NS_PER_S)

    def succeeded(self, permit: int) -> None:
        """The request was answered."""
        if permit != self._era:
            return
        if self._state is BreakerState.CLOSED:
            self._remember(is_failure=False)
            return
        self._probes_out -= 1
        self._probes_ok += 1
        if self._probes_ok == self._rule.probes:
            self._enter(BreakerState.CLOSED)

    def failed(self, permit: int, now_ns: int) -> None:
        """The model failed on the request."""
        if permit != self._era:
            return
        if self._state is BreakerState.CLOSED:
            self._remember(is_failure=True)
            known, rule = len(self._outcomes), self._rule
            if known < rule.least or self._failures < rule.failure_ratio * known:
                return
        self._open_until_ns = now_ns + self._rule.open_ns
        self._enter(BreakerState.OPEN)

    def abandoned(self, permit: int) -> None:
        """The request ended without saying anything about the model; a probe makes room for another."""
        if permit == self._era and self._state is BreakerState.HALF_OPEN:
            self._probes_out -= 1

    def _enter(self, state: BreakerState) -> None:
        self._state = state
        self._era += 1
        self._probes_out = 0  # permits given in half-open and not concluded
        self._probes_ok = 0
        self._failures = 0
        self._outcomes: deque[bool] = deque(maxlen=self._rule.window)

    def _remember(self, *, is_failure: bool) -> None:
        outcomes = self._outcomes
        if len(outcomes) == self._rule.window:
            self._failures -= outcomes[0]
        outcomes.append(is_failure)
        self._failures += is_failure
