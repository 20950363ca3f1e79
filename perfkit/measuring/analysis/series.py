"""How fast did a recorded counter grow while it was measured?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from perfkit.clock import NS_PER_S
from perfkit.measuring.analysis.blocks import Floats
from perfkit.measuring.analysis.instants import relative_ns

if TYPE_CHECKING:
    import pandas as pd

    from perfkit.measuring.analysis.rundata import RunData
    from perfkit.measuring.analysis.warmup import Window

_MARGIN_NS = NS_PER_S  # readings this close to a window describe its edges


def counter_rate(run: RunData, windows: Sequence[Window], source: str, name: str) -> float | None:
    """Growth a second of a cumulative counter over the windows; None where it was not recorded."""
    rows = run.series[(run.series["source"] == source) & (run.series["name"] == name)]
    if not len(rows):
        return None
    times, values = _in_order(rows, run.started_ns)
    spans = [_growth(times, values, window) for window in windows]
    seconds = sum(span for span, _ in spans)
    return sum(grown for _, grown in spans) / seconds if seconds > 0 else None


def _in_order(rows: pd.DataFrame, base_ns: int) -> tuple[Floats, Floats]:
    times = relative_ns(rows, "time", base_ns)
    order = np.argsort(times, kind="stable")
    return times[order], rows["value"].to_numpy(dtype=np.float64)[order]


def _growth(times: Floats, values: Floats, window: Window) -> tuple[float, float]:
    """Seconds covered and growth inside one window; (0, 0) when it has no two readings of one process."""
    near = (times >= window.start_ns - _MARGIN_NS) & (times <= window.end_ns + _MARGIN_NS)
    if int(near.sum()) < 2:
        return 0.0, 0.0
    times, values = times[near], values[near]
    start, end = max(window.start_ns, times[0]), min(window.end_ns, times[-1])
    grown = float(np.interp(end, times, values) - np.interp(start, times, values))
    # A counter that falls belongs to a process that was replaced in between.
    return ((end - start) / NS_PER_S, grown) if end > start and bool(np.all(np.diff(values) >= 0)) else (0.0, 0.0)


def server_cores(run: RunData, windows: Sequence[Window]) -> float | None:
    """CPU cores that the server used on average, its process and the processes that it has started."""
    rates = [counter_rate(run, windows, "process", name) for name in ("user_cpu", "system_cpu")]
    known = [rate for rate in rates if rate is not None]
    children = counter_rate(run, windows, "children", "cpu") or 0.0  # where it was not recorded there were none
    return sum(known) + children if len(known) == len(rates) else None


def stolen_ratio(run: RunData, windows: Sequence[Window]) -> float | None:
    """Share of the cores' time that the hypervisor gave to somebody else."""
    sources = {str(source) for source in run.series.loc[run.series["name"] == "steal", "source"]}
    rates = [counter_rate(run, windows, source, "steal") for source in sorted(sources)]
    known = [rate for rate in rates if rate is not None]
    return sum(known) / len(known) if known else None
