"""What does the server keep to at its sockets, and what does it write down?"""

from __future__ import annotations

import dataclasses

from perfkit.fields import Checked, field


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HttpSettings(Checked):
    """Limits of the HTTP front."""

    max_body_bytes: int = field(8 << 20, "largest request body; above it the answer is 413", low=1, high=1 << 30)
    request_timeout_s: float = field(
        10.0, "a whole request must arrive within this time, else 408", low=0.1, high=600.0
    )
    keep_alive_s: float = field(75.0, "an idle connection is closed after this time", low=0.1, high=3600.0)
    pre_stop_s: float = field(
        0.0, "after SIGTERM: how long not ready is told while requests are still taken", low=0.0, high=600.0
    )
    drain_s: float = field(20.0, "how long a shutdown waits for accepted requests", low=0.0, high=600.0)
    server_timing: bool = field(False, "always answer with Server-Timing (else only when the request asks)")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LedgerSettings(Checked):
    """The per-request record of instants."""

    stamps: bool = field(True, "stamp every instant; off only to measure what stamping costs", live=False)
    capacity: int = field(
        1 << 17,
        "requests kept until somebody reads them; the oldest are overwritten",
        live=False,
        low=1024,
        high=1 << 22,
    )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings(Checked):
    """Which requests get a line of their own in the server's log."""

    slow_s: float | None = field(None, "a request that takes at least this long is logged", low=1e-6, high=3600.0)
    slow_ratio: float | None = field(
        None, "a request that takes this many times the median of late is logged", low=1.0, high=1000.0
    )
