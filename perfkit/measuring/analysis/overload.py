"""Does an open loop ask for more than the service can do? Then there is no steady state to measure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import units
from perfkit.measuring.analysis.instants import relative_ns

if TYPE_CHECKING:
    from perfkit.measuring.analysis.measured import Measured
    from perfkit.measuring.analysis.rundata import RunData

MOST_BACKLOG_RATIO = 0.05  # judgement; slower growth shows as a drift of the latency
_NOISE = 3.0  # standard deviations of a Poisson count
MOST_TURNED_AWAY_RATIO = 0.01  # judgement
_TURNED_AWAY = ("rejected", "expired")


def find_overload(run: RunData, measured: Measured) -> str | None:
    """One line that says how the service fell behind, or None. Open loop only."""
    requests = len(measured.rows)
    if run.is_closed_loop or requests == 0:
        return None
    away = int(measured.rows["end_state"].isin(_TURNED_AWAY).sum())
    if away > MOST_TURNED_AWAY_RATIO * requests:
        return f"overload: {units.format_percent(away / requests)} of the requests were rejected or expired"
    received = relative_ns(run.requests, "received", run.started_ns)
    ended = sum(int(((received > span.start_ns) & (received <= span.end_ns)).sum()) for span in measured.windows)
    backlog = requests - ended
    if backlog <= max(MOST_BACKLOG_RATIO * requests, _NOISE * requests**0.5):
        return None
    return f"overload: the backlog grew by {backlog} requests while {requests} arrived"
