"""Where does the warm-up of each round end, and which span of it counts as measured?

MSER-5 (White 1997): of the means of five latencies each, drop the first d so that the standard
error of the rest is least. A minimum at the far end of the allowed range means that the round was too
short to see the end of its warm-up. No fixed time is dropped.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from perfkit.clock import NS_PER_S
from perfkit.measuring.analysis.blocks import Floats
from perfkit.measuring.analysis.instants import relative_ns, schedule_order

if TYPE_CHECKING:
    import pandas as pd

    from perfkit.measuring.analysis.rundata import RunData

GROUP = 5  # the 5 of MSER-5
LEAST_GROUPS = 10  # fewer means than this cannot place a minimum
NEGLIGIBLE_RATIO = (
    1e-3  # a standard error below 0.1 % of the mean is as good as the least; constant series have no minimum
)
OK = "ok"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """How many of the first values are warm-up, and whether its end was seen (None: too few values)."""

    dropped: int
    ended: bool | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The measured span of one round, in nanoseconds after the run's start."""

    round: int
    start_ns: float
    end_ns: float
    warmup_s: float
    warmup_ended: bool | None

    @property
    def seconds(self) -> float:
        """Length of the span."""
        return (self.end_ns - self.start_ns) / NS_PER_S


def mser_cut(values: Floats) -> Cut:
    """The MSER-5 truncation point of a series."""
    groups = len(values) // GROUP
    if groups < LEAST_GROUPS:
        return Cut(dropped=0, ended=None)
    means = values[: groups * GROUP].reshape(groups, GROUP).mean(axis=1)
    good_enough = (NEGLIGIBLE_RATIO * means.mean()) ** 2
    means = means - means.mean()  # keeps the sum of squares below free of cancellation
    left = np.arange(groups, 0, -1)
    sums, squares = (np.cumsum(part[::-1])[::-1] for part in (means, means * means))
    error = (squares - sums * sums / left) / left**2
    limit = groups // 2
    allowed = error[: limit + 1]
    dropped = int(np.argmax(allowed <= max(float(allowed.min()), good_enough)))
    return Cut(dropped=dropped * GROUP, ended=dropped < limit)


def find_windows(run: RunData) -> tuple[Window, ...]:
    """The measured span of every round in which a request was scheduled."""
    found = (_round_window(run, rows_of_round(run, entry["index"]), entry) for entry in run.rounds)
    return tuple(window for window in found if window is not None)


def rows_of_round(run: RunData, index: int) -> pd.DataFrame:
    """The requests of one round: the table itself where there is no other."""
    numbers = run.requests["round"]
    inside = (numbers == index).fillna(False).to_numpy(dtype=bool)
    return run.requests if inside.all() else run.requests[inside]


def _round_window(run: RunData, rows: pd.DataFrame, entry: object) -> Window | None:
    scheduled = relative_ns(rows, "scheduled", run.started_ns)
    received = relative_ns(rows, "received", run.started_ns)
    order = schedule_order(rows, scheduled)
    if len(order) == 0:
        return None
    scheduled, received = scheduled[order], received[order]
    answered = (rows["end_state"] == OK).to_numpy(dtype=bool)[order] & ~np.isnan(received)
    cut = mser_cut((received - scheduled)[answered])
    first = int(np.flatnonzero(answered)[cut.dropped]) if cut.dropped else 0
    start = float(scheduled[max(first, _fill(run, len(order)))])
    end = _round_end(run, scheduled, entry)
    if end <= start or (run.is_closed_loop and end - start < _turn_ns(run, (received - scheduled)[answered])):
        return None
    warmup_s = (start - float(scheduled[0])) / NS_PER_S
    index = int(entry["index"])  # type: ignore[index]
    return Window(round=index, start_ns=start, end_ns=end, warmup_s=warmup_s, warmup_ended=cut.ended)


def _fill(run: RunData, requests: int) -> int:
    """The users of a closed loop all start at once: their first requests fill the service and are not its flow."""
    return min(run.users or 0, requests // 2)


def _turn_ns(run: RunData, latency_ns: Floats) -> float:
    """How long one turn of a closed loop takes. A shorter window holds the answers of one batch and no flow at all."""
    return float(np.median(latency_ns)) + run.think_s * NS_PER_S if len(latency_ns) else 0.0


def _round_end(run: RunData, scheduled: Floats, entry: object) -> float:
    """The last schedule, not the last reply: while the service drains, the load has already ended.

    A closed loop's last schedule coincides with a reply, as its first does, so whole cycles are counted.
    An open loop's schedule goes on for one more mean gap.
    """
    last = float(scheduled[-1])
    if run.is_closed_loop or len(scheduled) < 2:
        return last
    gap = (last - float(scheduled[0])) / (len(scheduled) - 1)
    return min(last + gap, float(entry["ended_ns"] - run.started_ns))  # type: ignore[index]
