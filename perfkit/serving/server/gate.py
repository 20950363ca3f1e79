"""Which requests are turned away before they ask for a place in the queue?

Three guards, each there only when its setting wants it: the breaker (is the model worth asking?),
the concurrency limit (how many are in hand?) and the token bucket (how fast do they come?). With
none of them there is no gate, and a request pays nothing.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

from perfkit.clock import NS_PER_S, Clock
from perfkit.records import EndState
from perfkit.serving.scheduling.breaker import Breaker, BreakerRule, BreakerState
from perfkit.serving.scheduling.concurrency import AdaptiveLimit, Ended, FixedLimit
from perfkit.serving.scheduling.decisions import Rejected
from perfkit.serving.scheduling.token_bucket import TokenBucket
from perfkit.settings import BreakerSettings, LimitSettings, ServerSettings


class Pass(NamedTuple):
    """Leave to go on, for one request; concluded by `Gate.tell` or `Gate.take_back`, once."""

    size: int
    since_ns: int
    breaker_permit: int


class Gate:
    """The guards of one pipeline. Safe for any thread."""

    def __init__(
        self, clock: Clock, breaker: Breaker | None, limit: FixedLimit | None, bucket: TokenBucket | None
    ) -> None:
        self._clock = clock
        self._lock = threading.Lock()  # guards the three below
        self._breaker = breaker
        self._limit = limit
        self._bucket = bucket

    def ask(self, count: int) -> Pass | Rejected:
        """Let a request with `count` inputs go on, or say why not."""
        with self._lock:
            now_ns = self._clock.now_ns()
            permit = self._breaker.ask(now_ns) if self._breaker else 0
            if isinstance(permit, Rejected):
                return permit
            rejected = self._limit.enter(count) if self._limit else None
            if rejected is None and self._bucket and (rejected := self._bucket.take(count, now_ns)) and self._limit:
                self._limit.give_back(count)
            if rejected is None:
                return Pass(count, now_ns, permit)
            if self._breaker:
                self._breaker.abandoned(permit)
            return rejected

    def take_back(self, granted: Pass) -> None:
        """The request was turned away later on: as if it had never asked."""
        with self._lock:
            if self._breaker:
                self._breaker.abandoned(granted.breaker_permit)
            if self._limit:
                self._limit.give_back(granted.size)
            if self._bucket:
                self._bucket.give_back(granted.size)

    def tell(self, granted: Pass, state: EndState) -> None:
        """The request has ended. Only OK and FAILED say something about the model."""
        with self._lock:
            now_ns = self._clock.now_ns()
            if self._limit:
                is_late = state is EndState.EXPIRED
                self._limit.leave(Ended(granted.size, now_ns - granted.since_ns, is_late), now_ns)
            if self._breaker is None:
                return
            if state is EndState.OK:
                self._breaker.succeeded(granted.breaker_permit)
            elif state is EndState.FAILED:
                self._breaker.failed(granted.breaker_permit, now_ns)
            else:
                self._breaker.abandoned(granted.breaker_permit)

    def closed_to_all(self) -> Rejected | None:
        """Why nothing at all passes at present; None when something may."""
        with self._lock:
            now_ns = self._clock.now_ns()
            if self._breaker is None or self._breaker.state(now_ns) is not BreakerState.OPEN:
                return None
            return self._breaker.refusal(now_ns)

    def stats(self) -> dict[str, Any]:
        """Where the guards stand; None for a guard that is not there."""
        with self._lock:
            return {
                "breaker": self._breaker.state(self._clock.now_ns()).value if self._breaker else None,
                "concurrency_limit": self._limit.limit if self._limit else None,
                "in_hand": self._limit.in_hand if self._limit else None,
            }


def build_gate(settings: ServerSettings, clock: Clock) -> Gate | None:
    """The guards that the settings want; None when they want none."""
    limits = settings.limits
    breaker = Breaker(_rule(settings.breaker)) if settings.breaker.enabled else None
    limit = _limit(limits)
    bucket = TokenBucket(limits.bucket_rps, limits.burst) if limits.bucket_rps is not None else None
    if breaker is None and limit is None and bucket is None:
        return None
    return Gate(clock, breaker, limit, bucket)


def _rule(settings: BreakerSettings) -> BreakerRule:
    return BreakerRule(
        failure_ratio=settings.failure_ratio,
        window=settings.window,
        least=settings.least,
        open_ns=round(settings.open_s * NS_PER_S),
        probes=settings.probes,
    )


def _limit(limits: LimitSettings) -> FixedLimit | None:
    if limits.policy == "none":
        return None
    if limits.policy == "fixed":
        return FixedLimit(limits.in_hand)
    return AdaptiveLimit(limits.in_hand, round(limits.target_s * NS_PER_S))
