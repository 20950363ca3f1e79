"""Which requests are turned away before they ask for a place in the queue?

Three guards, each there only when its setting wants it: the breaker (is the model worth asking?),
the concurrency limit (how many are in hand?) and the token bucket (how fast do they come?). With
none of them there is no gate, and a request pays nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

from perfkit.clock import NS_PER_S, Clock
from perfkit.records import EndState
from perfkit.serving.scheduling.breaker import Breaker, BreakerRule, BreakerState
from perfkit.serving.scheduling.concurrency import AdaptiveLimit, Ended, FixedLimit
from perfkit.serving.scheduling.decisions import Rejected
from perfkit.serving.scheduling.token_bucket import TokenBucket
from perfkit.serving.server.wishes import known_lanes
from perfkit.settings.guards import BreakerSettings, LimitSettings
from perfkit.settings.queueing import DEFAULT_LANE
from perfkit.settings.server import ServerSettings


class Pass(NamedTuple):
    """Leave to go on, for one request; concluded by `Gate.tell` or `Gate.take_back`, once."""

    size: int
    since_ns: int
    breaker: Breaker | None
    breaker_permit: int


class Gate:
    """The guards of one pipeline; `breakers` holds each lane's own, by name, in the order of the lanes' numbers.

    Safe for any thread.
    """

    def __init__(
        self,
        clock: Clock,
        breakers: Mapping[str, Breaker | None],
        limit: FixedLimit | None,
        bucket: TokenBucket | None,
    ) -> None:
        self._clock = clock
        self._lock = threading.Lock()  # guards every guard
        self._breakers = breakers
        self._by_lane = tuple(breakers.values())
        self._limit = limit
        self._bucket = bucket

    def ask(self, count: int, lane: int = 0) -> Pass | Rejected:
        """Let a request with `count` inputs for a lane go on, or say why not."""
        breaker = self._by_lane[lane]
        with self._lock:
            now_ns = self._clock.now_ns()
            permit = breaker.ask(now_ns) if breaker else 0
            if isinstance(permit, Rejected):
                return permit
            rejected = self._enter(count, now_ns)
            if rejected is None:
                return Pass(count, now_ns, breaker, permit)
            if breaker:
                breaker.abandoned(permit)
            return rejected

    def take_back(self, granted: Pass) -> None:
        """The request was turned away later on: as if it had never asked."""
        with self._lock:
            if granted.breaker:
                granted.breaker.abandoned(granted.breaker_permit)
            if self._limit:
                self._limit.give_back(granted.size)
            if self._bucket:
                self._bucket.give_back(granted.size)

    def tell(self, granted: Pass, state: EndState) -> None:
        """The request has ended. Only OK and FAILED say something about the model."""
        breaker, permit = granted.breaker, granted.breaker_permit
        with self._lock:
            now_ns = self._clock.now_ns()
            if self._limit:
                self._limit.leave(Ended(granted.size, now_ns - granted.since_ns, state), now_ns)
            if breaker is None:
                return
            if state is EndState.OK:
                breaker.succeeded(permit)
            elif state is EndState.FAILED:
                breaker.failed(permit, now_ns)
            else:
                breaker.abandoned(permit)

    def closed_to_all(self) -> Rejected | None:
        """Why nothing at all passes at present; None when some lane's requests may."""
        with self._lock:
            now_ns = self._clock.now_ns()
            refusals = []
            for breaker in self._by_lane:
                if breaker is None or breaker.state(now_ns) is not BreakerState.OPEN:
                    return None
                refusals.append(breaker.refusal(now_ns))
        return min(refusals, key=lambda refusal: refusal.retry_after_s)

    def stats(self) -> dict[str, Any]:
        """Where the guards stand: the state of each breaker, and None for a limit that is not there."""
        with self._lock:
            now_ns = self._clock.now_ns()
            states = {name: breaker.state(now_ns).value for name, breaker in self._breakers.items() if breaker}
            return {
                "breakers": states,
                "concurrency_limit": self._limit.limit if self._limit else None,
                "in_hand": self._limit.in_hand if self._limit else None,
            }

    def _enter(self, count: int, now_ns: int) -> Rejected | None:
        """Past the limit and the bucket, or past neither."""
        rejected = self._limit.enter(count) if self._limit else None
        if rejected is None and self._bucket and (rejected := self._bucket.take(count, now_ns)) and self._limit:
            self._limit.give_back(count)
        return rejected


def build_gate(settings: ServerSettings, clock: Clock) -> Gate | None:
    """The guards that the settings want; None when they want none."""
    limits = settings.limits
    breakers = _breakers(settings)
    limit = _limit(limits)
    bucket = TokenBucket(limits.bucket_rps, limits.burst) if limits.bucket_rps is not None else None
    if not any(breakers.values()) and limit is None and bucket is None:
        return None
    return Gate(clock, breakers, limit, bucket)


def _breakers(settings: ServerSettings) -> dict[str, Breaker | None]:
    """Each lane's own, in the order of their numbers; one alone where there are no lanes."""
    rule, enabled = _rule(settings.breaker), settings.breaker.enabled
    lanes = known_lanes(settings)
    if lanes is None:
        return {DEFAULT_LANE: Breaker(rule) if enabled else None}
    wanted = {lane.name: lane.settings.breaker for lane in lanes.values()}
    return {name: Breaker(rule) if (enabled if own is None else own) else None for name, own in wanted.items()}


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
