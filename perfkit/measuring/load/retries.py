"""When is a failed request sent again, and when is it better left alone?

Retries are what keeps an overload alive after its cause has gone (Bronson et al. 2021, Huang et al.
2022), so each rule here is a brake: exponential backoff with full jitter, a budget of retries as a
share of requests, and a throttle that keeps requests at the client while the service accepts few
(Beyer et al., Site Reliability Engineering, chapter 21). Pure: time and chance are arguments.
"""

from __future__ import annotations

import dataclasses
from collections import deque

from perfkit.clock import NS_PER_S
from perfkit.errors import ConfigError
from perfkit.fields import Checked, field
from perfkit.measuring.load.attempts import MOST_ATTEMPTS
from perfkit.records import EndState

BUDGET_BURST = 10
"""Retries that the budget allows at once, after a quiet time and at the start; judgement, as gRPC's maxTokens."""
ACCEPTS_WEIGHT = 2.0  # K of the throttle: the service is offered up to twice what it accepts (SRE book, chapter 21)
_SLOTS = 10  # parts of the throttle's window; the oldest is forgotten as a whole
_TOKEN = 1_000_000  # budgets are counted in millionths, as integers, so that no share is lost to rounding

NOT_RETRIED = frozenset({EndState.OK, EndState.REFUSED, EndState.CANCELLED})
"""Ends that another attempt cannot mend: served, the input itself is refused, nobody waits any more."""
NOT_ACCEPTED = frozenset(
    {EndState.REJECTED, EndState.EXPIRED, EndState.TIMED_OUT, EndState.CONNECT_FAILED, EndState.DISCONNECTED}
)
"""Ends that say "too much" rather than "wrong"; the throttle counts every other reply as accepted."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Retries(Checked):
    """Whether and how a client sends a failed request again. A Retry-After is always honoured."""

    max_attempts: int = field(1, "attempts at a request, the first included; 1 = no retries", low=1, high=MOST_ATTEMPTS)
    base_s: float = field(0.1, "backoff: longest pause before the second attempt; it doubles", low=0.0, high=60.0)
    cap_s: float = field(10.0, "backoff: the pause grows no longer than this", low=0.0, high=600.0)
    budget_ratio: float | None = field(
        0.2, "retries allowed as a share of requests (0.2 = one in five); none = no limit", low=0.0, high=1.0
    )
    throttle_s: float | None = field(
        None,
        "hold attempts back with p = max(0, (requests - 2 accepts) / (requests + 1)) over this time; none = never",
        low=0.1,
        high=600.0,
    )

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        if self.cap_s < self.base_s:
            raise ConfigError(
                f"retries.cap_s is {self.cap_s:g} and retries.base_s {self.base_s:g}; the cap takes the base or more"
            )

    @property
    def is_on(self) -> bool:
        """Whether any request may be sent again or held back."""
        return self.max_attempts > 1 or self.throttle_s is not None


def longest_pause_s(attempt: int, retries: Retries) -> float:
    """The upper end of the backoff after a failed attempt, counted from 1."""
    return min(retries.cap_s, retries.base_s * 2.0 ** (attempt - 1))


def pause_s(attempt: int, retries: Retries, retry_after_s: float, chance: float) -> float:
    """How long to wait after a failed attempt: what the service asks for, and full jitter on top.

    `chance` is uniform in 0 to 1. The jitter comes on top of Retry-After because clients that were
    all told the same would come back together.
    """
    return retry_after_s + chance * longest_pause_s(attempt, retries)


def read_retry_after(value: bytes) -> float:
    """The seconds that a Retry-After header asks for; 0 for a date, which needs a common clock, and for nonsense."""
    text = value.strip()
    return float(text) if text.isdigit() and len(text) <= 9 else 0.0


class Budget:
    """Allows retries as a share of requests: each request earns a part of a token, each retry spends one."""

    def __init__(self, ratio: float | None) -> None:
        self._earned = None if ratio is None else round(ratio * _TOKEN)
        self._most = BUDGET_BURST * _TOKEN if self._earned else 0
        self._tokens = self._most

    def earn(self) -> None:
        """A request was made for the first time."""
        if self._earned is not None:
            self._tokens = min(self._most, self._tokens + self._earned)

    def spend(self) -> bool:
        """Take what one retry costs; False when it is not there."""
        if self._earned is None:
            return True
        if self._tokens < _TOKEN:
            return False
        self._tokens -= _TOKEN
        return True


def hold_back_ratio(requests: int, accepts: int) -> float:
    """The share of attempts to hold back at the client: max(0, (requests - K accepts) / (requests + 1))."""
    return max(0.0, (requests - ACCEPTS_WEIGHT * accepts) / (requests + 1))


class Throttle:
    """Holds attempts back while the service accepts few of them; counts over a sliding window."""

    def __init__(self, window_s: float) -> None:
        self._slot_ns = max(1, round(window_s * NS_PER_S / _SLOTS))
        self._slots: deque[list[int]] = deque(maxlen=_SLOTS)  # [number of the slot, requests, accepts]
        self.held_back = 0

    def lets_through(self, now_ns: int, chance: float) -> bool:
        """Whether an attempt may leave; either way it counts as a request. `chance` is uniform in 0 to 1."""
        requests, accepts = self.counts(now_ns)
        self._slot(now_ns)[1] += 1
        if chance >= hold_back_ratio(requests, accepts):
            return True
        self.held_back += 1
        return False

    def accepted(self, now_ns: int) -> None:
        """The service took an attempt on."""
        self._slot(now_ns)[2] += 1

    def counts(self, now_ns: int) -> tuple[int, int]:
        """Requests and accepts within the window."""
        oldest = now_ns // self._slot_ns - _SLOTS + 1
        while self._slots and self._slots[0][0] < oldest:
            self._slots.popleft()
        return sum(slot[1] for slot in self._slots), sum(slot[2] for slot in self._slots)

    def _slot(self, now_ns: int) -> list[int]:
        number = now_ns // self._slot_ns
        if not self._slots or self._slots[-1][0] < number:
            self._slots.append([number, 0, 0])
        return self._slots[-1]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One attempt that has ended without success."""

    attempt: int
    outcome: int
    age_ns: int
    """Since the request's scheduled instant."""
    retry_after_s: float


class RetryPolicy:
    """Decides on every attempt that ended. Counts what it decided."""

    def __init__(self, retries: Retries, deadline_s: float | None) -> None:
        self._retries = retries
        self._deadline_ns = None if deadline_s is None else round(deadline_s * NS_PER_S)
        self._budget = Budget(retries.budget_ratio)
        self.retried = 0
        self.over_budget = 0

    def first_attempt_ended(self) -> None:
        """Every request earns its share of the budget once, however it ended."""
        self._budget.earn()

    def pause_ns(self, failure: Failure, chance: float) -> int | None:
        """How long to wait before the next attempt; None when there shall be none."""
        if failure.outcome in NOT_RETRIED or failure.attempt >= self._retries.max_attempts:
            return None
        pause_ns = round(pause_s(failure.attempt, self._retries, failure.retry_after_s, chance) * NS_PER_S)
        if self._deadline_ns is not None and failure.age_ns + pause_ns >= self._deadline_ns:
            return None  # nobody would wait for that reply any more
        if not self._budget.spend():
            self.over_budget += 1
            return None
        self.retried += 1
        return pause_ns
