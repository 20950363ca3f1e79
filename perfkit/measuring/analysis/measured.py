"""Which requests count? Those scheduled inside the measured windows, in the order of their schedule."""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from perfkit.clock import NS_PER_S
from perfkit.measuring.analysis.blocks import Floats
from perfkit.measuring.analysis.instants import relative_ns, schedule_order
from perfkit.measuring.analysis.warmup import OK, Window, find_windows, rows_of_round
from perfkit.records import EndState

if TYPE_CHECKING:
    import pandas as pd

    from perfkit.measuring.analysis.rundata import RunData

_GAVE_UP = EndState.TIMED_OUT.label


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A run reduced to its measured windows.

    `rows` holds every request scheduled in a window. `latency_s` counts from the schedule and `service_s`
    from the actual send; both cover the answered requests and those whose client gave up (infinite),
    `sizes` of them in each window. `replies_ns` are the instants of good replies inside each window.
    """

    windows: tuple[Window, ...]
    rows: pd.DataFrame
    latency_s: Floats
    service_s: Floats
    scheduled_ns: Floats
    sizes: tuple[int, ...]
    replies_ns: tuple[Floats, ...]

    @property
    def seconds(self) -> float:
        """Length of all windows together."""
        return sum(window.seconds for window in self.windows)

    @property
    def replies(self) -> int:
        """Good replies inside the windows."""
        return sum(len(part) for part in self.replies_ns)

    @property
    def throughput_rps(self) -> float | None:
        """Good replies a second; None when nothing was measured."""
        return self.replies / self.seconds if self.seconds > 0 else None


def measure_windows(run: RunData) -> Measured:
    """Finds the windows of a run and the requests inside them."""
    import pandas as pd

    windows = find_windows(run)
    parts = [_window_part(run, window) for window in windows]
    rows = pd.concat([part[0] for part in parts]) if len(parts) > 1 else parts[0][0] if parts else run.requests.iloc[:0]
    counted = rows["end_state"].isin([OK, _GAVE_UP]).to_numpy(dtype=bool)
    scheduled, sent, received = (
        relative_ns(rows, name, run.started_ns)[counted] for name in ("scheduled", "sent", "received")
    )
    gave_up = (rows["end_state"] == _GAVE_UP).to_numpy(dtype=bool)[counted]
    received = np.where(gave_up | np.isnan(received), np.inf, received)
    edges = np.cumsum([0, *(len(part[0]) for part in parts)])
    return Measured(
        windows=windows,
        rows=rows,
        latency_s=(received - scheduled) / NS_PER_S,
        service_s=(received - sent) / NS_PER_S,
        scheduled_ns=scheduled,
        sizes=tuple(int(counted[start:end].sum()) for start, end in itertools.pairwise(edges)),
        replies_ns=tuple(part[1] for part in parts),
    )


def _window_part(run: RunData, window: Window) -> tuple[pd.DataFrame, Floats]:
    of_round = rows_of_round(run, window.round)
    scheduled = relative_ns(of_round, "scheduled", run.started_ns)
    order = schedule_order(of_round, scheduled)
    due = scheduled[order]
    order = order[np.searchsorted(due, window.start_ns) : np.searchsorted(due, window.end_ns, side="right")]
    received = relative_ns(of_round, "received", run.started_ns)
    good = (of_round["end_state"] == OK).to_numpy(dtype=bool)
    inside = good & (received > window.start_ns) & (received <= window.end_ns)
    return of_round.iloc[_as_slice(order)], np.sort(received[inside])


def _as_slice(places: NDArray[np.intp]) -> NDArray[np.intp] | slice:
    """Neighbouring rows as a slice, which copies nothing."""
    first = int(places[0]) if len(places) else 0
    is_run = bool(np.array_equal(places, np.arange(first, first + len(places))))
    return slice(first, first + len(places)) if is_run else places
