"""How long does a call of the model take at each batch size, and how busy does that keep the workers?"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from perfkit.clock import NS_PER_S
from perfkit.measuring.analysis.blocks import Floats
from perfkit.measuring.analysis.instants import overlap_ns, relative_ns

if TYPE_CHECKING:
    import pandas as pd

    from perfkit.measuring.analysis.measured import Measured
    from perfkit.measuring.analysis.rundata import RunData


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CallTimes:
    """The calls of one batch size: how long each kept its worker, and how long it computed on the device.

    Means and standard deviations in seconds; None where no call has the instants for it.
    """

    size: int
    batches: int
    occupied_s: float | None
    occupied_sd_s: float | None
    compute_s: float | None
    compute_sd_s: float | None

    def to_json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Occupation:
    """The worker of each batch: from when to when it kept it, in nanoseconds after the run's start.

    `compute_s` is the part of it that the device computed; `workers` is how many there were at once.
    """

    since_ns: Floats
    until_ns: Floats
    sizes: Floats
    compute_s: Floats
    workers: int

    @property
    def seconds(self) -> Floats:
        """How long each batch kept its worker."""
        return (self.until_ns - self.since_ns) / NS_PER_S


def occupation(run: RunData) -> Occupation | None:
    """When each batch of the run kept its worker, thread after thread; None where no batches were recorded.

    A worker has a batch from the instant that it takes it, so inline preprocess counts, and keeps it until it is free
    again, so inline postprocess counts too.
    """
    if not len(run.batches):
        return None
    columns = [
        relative_ns(run.batches, name, run.started_ns)
        for name in ("taken", "batch_sealed", "woken", "worker_free", "compute_started", "compute_ended")
    ]
    round_, thread, size = (
        run.batches[name].to_numpy(dtype="float64", na_value=np.nan) for name in ("round", "model_thread", "size")
    )
    order = np.lexsort((columns[1], thread, round_))
    taken, sealed, woken, freed, began, ended, round_, thread, size = (
        column[order] for column in (*columns, round_, thread, size)
    )
    same = (round_[1:] == round_[:-1]) & (thread[1:] == thread[:-1])
    following = np.append(np.where(same, freed[1:], np.nan), np.nan)
    earlier = np.insert(np.where(same, woken[:-1], np.nan), 0, np.nan)
    is_second_part = taken < earlier  # of a batch that was too large for the device's memory
    return Occupation(
        since_ns=np.where(is_second_part, sealed, np.fmin(taken, sealed)),
        until_ns=np.where(following > woken, following, woken),
        sizes=size,
        compute_s=(ended - began) / NS_PER_S,
        workers=min(len(np.unique(thread[~np.isnan(thread)])), _most_at_once(run)),
    )


def _most_at_once(run: RunData) -> int:
    """The most model threads that a gauge saw at once: those of single requests are many, one after the other."""
    return max((int(gauge["threads"]) for gauge in run.gauges if gauge.get("threads")), default=sys.maxsize)


def workers_busy_ratio(found: Occupation | None, measured: Measured) -> float | None:
    """Share of the workers' time that batches kept them, over the measured windows; None where it is not known."""
    if found is None or not found.workers or measured.seconds <= 0 or not np.isfinite(found.seconds).any():
        return None
    spans = [(window.start_ns, window.end_ns) for window in measured.windows]
    busy_ns = sum(float(overlap_ns(found.since_ns, found.until_ns, span).sum()) for span in spans)
    return busy_ns / NS_PER_S / (found.workers * measured.seconds)


def call_times(found: Occupation | None, measured: Measured) -> tuple[CallTimes, ...]:
    """The calls taken inside the measured windows, by batch size."""
    if found is None:
        return ()
    import pandas as pd

    calls = pd.DataFrame({"size": found.sizes, "occupied_s": found.seconds, "compute_s": found.compute_s})
    inside = np.zeros(len(calls), dtype=bool)
    for window in measured.windows:
        inside |= (found.since_ns >= window.start_ns) & (found.since_ns <= window.end_ns)
    return tuple(_by_size(calls[inside]))


def _by_size(calls: pd.DataFrame) -> Iterator[CallTimes]:
    grouped = calls.groupby("size")
    means, spreads, counts = grouped.mean(), grouped.std(ddof=1), grouped.size()
    for size in means.index:
        figures = {
            name: _known(table.at[size, column])
            for column in ("occupied_s", "compute_s")
            for name, table in ((column, means), (f"{column[:-2]}_sd_s", spreads))
        }
        yield CallTimes(size=int(size), batches=int(counts[size]), **figures)


def _known(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None
