"""Do the counts in flight agree with the times spent? Little's law and the interactive law.

Little: L, the time integral of a gauge that the server keeps apart from its ledger, against X W, the
server-side latencies clipped to the span between the readings.
Interactive law: in a closed loop of N users R = N / X - Z, with R clipped to the window likewise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from perfkit import units
from perfkit.clock import NS_PER_S
from perfkit.measuring.analysis.instants import instant_matrix, overlap_ns, relative_ns
from perfkit.measuring.analysis.ledger import SERVER_INSTANTS, has_server_half
from perfkit.measuring.analysis.validity.check import Check, at_most, not_judged

if TYPE_CHECKING:
    from perfkit.measuring.analysis.measured import Measured
    from perfkit.measuring.analysis.rundata import RunData

MOST_RESIDUAL = 0.02
_BLINK_NS = NS_PER_S // 1_000  # two readings closer than this may show the same area
_APART_NS = 20_000  # the gauge's clock is read beside the ledger's stamps; own trials: 2 to 10 µs a request
LITTLE_ORIGIN = "Little 1961; within 2 %, N / n (what the window's edges hide), or 20 µs a request between clocks"
LAW_ORIGIN = "interactive response time law, Denning and Buzen 1978; within 2 %"
GAUGE_ORIGIN = "by definition: a gauge that stands still measures nothing"


def check_gauge(run: RunData) -> Check:
    """The gauge's clock and integral move on while requests are in the server."""
    name = "gauge fresh"
    if not run.gauges:
        return not_judged(name, 0, GAUGE_ORIGIN, "the service gives no gauge")
    stale = sum(_is_stale(run, readings) for readings in _by_round(run.gauges).values())
    return at_most(name, stale, 0, GAUGE_ORIGIN, f"the gauge stood still or ran backwards in {stale} rounds")


def _by_round(gauges: Sequence[Mapping[str, Any]]) -> dict[int, list[Mapping[str, Any]]]:
    found: dict[int, list[Mapping[str, Any]]] = {}
    for reading in gauges:
        found.setdefault(int(reading["round"]), []).append(reading)
    return found


def _is_stale(run: RunData, readings: Sequence[Mapping[str, Any]]) -> bool:
    times = np.diff([int(reading["time_ns"]) for reading in readings])
    areas = np.diff([int(reading["area_ns"]) for reading in readings])
    busy = np.array([int(reading["in_flight"]) > 0 for reading in readings[:-1]])
    served = bool(
        (run.requests["accepted_ns"].notna() & (run.requests["round"] == readings[0]["round"]).fillna(False)).any()
    )
    moved = len(areas) > 0 and int(areas.sum()) > 0
    return bool((times <= 0).any() or (areas < 0).any()) or (served and not moved) or _froze(times, areas, busy)


def _froze(times: Any, areas: Any, busy: Any) -> bool:
    """Whether a gauge that showed requests grew by nothing for more than a blink: it was not read anew."""
    return bool((busy & (areas == 0) & (times > _BLINK_NS)).any())


def little_figures(run: RunData) -> tuple[float, float, float] | None:
    """L by the gauge, X W by the ledger, and what may lie between them by nature, as a share of L.

    None without gauge or ledger.
    """
    known = has_server_half(run.requests)
    if not run.gauges or not known.any():
        return None
    rows = run.requests[known]
    accepted = relative_ns(rows, "accepted", run.started_ns)
    # A request whose client left has no reply; it was in the server at least until its last stamp.
    last = np.fmax.reduce(instant_matrix(rows, SERVER_INSTANTS, run.started_ns), axis=1)
    area = spent = span = 0.0
    requests = 0
    for readings in _by_round(run.gauges).values():
        start, end = (float(int(reading["time_ns"]) - run.started_ns) for reading in (readings[0], readings[-1]))
        inside = overlap_ns(accepted, last, (start, end))
        area += int(readings[-1]["area_ns"]) - int(readings[0]["area_ns"])
        spent += float(inside.sum())
        requests += int((inside > 0).sum())
        span += end - start
    if span <= 0 or not requests:
        return None
    slack = max(peak_in_flight(run) / requests, _APART_NS * requests / spent if spent else 0.0)
    return area / span, spent / span, slack


def check_little(run: RunData) -> Check:
    """|L - X W| / L."""
    name = "Little"
    figures = little_figures(run)
    if figures is None:
        return not_judged(name, MOST_RESIDUAL, LITTLE_ORIGIN, "no gauge or no server ledger")
    gauge, ledger, slack = figures
    allowed = max(MOST_RESIDUAL, slack)
    residual = abs(gauge - ledger) / gauge if gauge > 0 else 1.0
    seen = f"{units.format_number(gauge)} in flight by the gauge, {units.format_number(ledger)} by the ledger"
    return at_most(name, residual, allowed, LITTLE_ORIGIN, seen)


def peak_in_flight(run: RunData) -> int:
    """N: users of the closed loop, else the most that the gauge showed."""
    return run.users or max((int(reading["in_flight"]) for reading in run.gauges), default=0)


def check_interactive_law(run: RunData, measured: Measured) -> Check:
    """|R - (N / X - Z)| / R over the measured windows, closed loop only."""
    name = "interactive law"
    if run.users is None:
        return not_judged(name, MOST_RESIDUAL, LAW_ORIGIN, "holds for a closed loop only")
    scheduled, received = (relative_ns(run.requests, instant, run.started_ns) for instant in ("scheduled", "received"))
    if run.load.get("think") == "exponential" and run.think_s > 0:
        return not_judged(name, MOST_RESIDUAL, LAW_ORIGIN, "think times are random and were not recorded")
    if bool((np.isnan(received) & ~np.isnan(scheduled)).any()):
        return not_judged(name, MOST_RESIDUAL, LAW_ORIGIN, "some requests got no reply, their users were held back")
    spans = [(window.start_ns, window.end_ns) for window in measured.windows]
    ended = sum(int(((received > start) & (received <= end)).sum()) for start, end in spans)
    if ended == 0:
        return not_judged(name, MOST_RESIDUAL, LAW_ORIGIN, "nothing was measured")
    spent = sum(float(overlap_ns(scheduled, received, span).sum()) for span in spans)
    response = spent / ended
    expected = sum(end - start for start, end in spans) * run.users / ended - run.think_s * NS_PER_S
    residual = abs(response - expected) / response
    return at_most(name, residual, MOST_RESIDUAL, LAW_ORIGIN, f"{run.users} users were not all waiting or thinking")
