"""What keeps the service from taking more than it can serve?"""

from __future__ import annotations

import dataclasses

from perfkit.errors import ConfigError
from perfkit.fields import Checked, field

LIMIT_POLICIES = ("none", "fixed", "adaptive")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LimitSettings(Checked):
    """How fast requests may come, and how many may be in hand, from admission to answer."""

    bucket_rps: float | None = field(
        None, "inputs a second that are let in, the rest gets 429; none = any", low=0.001, high=1e6
    )
    burst: int = field(1, "inputs that may come at once after a pause (with bucket_rps)", low=1, high=1_000_000)
    policy: str = field(
        "none",
        "limit on inputs in hand: fixed = in_hand; adaptive = falls below it while answers take over target_s",
        choices=LIMIT_POLICIES,
    )
    in_hand: int = field(64, "most inputs in hand (policy = fixed or adaptive)", low=1, high=1_000_000)
    target_s: float = field(0.2, "latency that the adaptive policy holds", low=0.001, high=60.0)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BreakerSettings(Checked):
    """When a failing model is given a rest: requests get 503 at once, then a few probes decide."""

    enabled: bool = field(False, "whether failures of the model open the breaker")
    failure_ratio: float = field(0.5, "share of the remembered requests that must have failed", low=0.001, high=1.0)
    window: int = field(100, "how many of the last requests are remembered", low=1, high=100_000)
    least: int = field(10, "it never opens on fewer remembered requests than this", low=1, high=100_000)
    open_s: float = field(5.0, "how long nothing passes once it is open", low=0.001, high=3600.0)
    probes: int = field(3, "requests that then pass; all must succeed to close it again", low=1, high=1000)

    def __post_init__(self) -> None:
        # super() needs the class cell, which slots=True replaces; the base is named instead.
        Checked.__post_init__(self)
        if self.least > self.window:
            raise ConfigError(
                f"breaker.least is {self.least} and breaker.window {self.window}; "
                "so many are never remembered (raise window or lower least)"
            )
