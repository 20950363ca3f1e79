"""How often does the interval of a percentile hold the truth, and how long must one measure for that?

Many runs of a queue whose true percentiles are known, each judged in two ways: as if every request
were independent of the one before, and as perfkit judges a run.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from perfkit.explaining.twin.single_server import SingleServer
from perfkit.measuring.analysis.latency import at_probability, quantile

if TYPE_CHECKING:
    import pandas

    from perfkit.measuring.analysis.blocks import Floats

INDEPENDENT, PERFKIT = "independent", "perfkit"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """So many runs, of so many seconds each."""

    queue: SingleServer
    seconds: float
    runs: int
    seed: int = 0


def trial_table(trials: Sequence[Trial], p: float = 0.99) -> pandas.DataFrame:
    """One row a run and way of judging: `seconds`, `times` (relaxation times), `method`, `run`, `value_s`, `low_s`,
    `high_s` (null: no upper end), `truth_s`, `holds`.
    """
    import pandas

    return pandas.DataFrame([row for trial in trials for row in _rows(trial, p)])


def coverage_table(trials: pandas.DataFrame) -> pandas.DataFrame:
    """One row a length and way of judging: the share of intervals that hold the truth, and that have no upper end."""
    grouped = trials.groupby(["seconds", "times", "method"], sort=True)
    return grouped.agg(
        runs=("run", "size"),
        holds_ratio=("holds", "mean"),
        open_ratio=("high_s", lambda ends: ends.isna().mean()),
    ).reset_index()


def _rows(trial: Trial, p: float) -> Iterator[dict[str, object]]:
    queue = trial.queue
    truth_s = queue.quantile_s(p)
    requests = queue.requests_in(trial.seconds)
    for number, latency_s in enumerate(queue.latencies(requests, trial.seed, runs=trial.runs)):
        for method, (value, low, high) in _judgements(latency_s, p, trial.seconds).items():
            yield {
                "seconds": trial.seconds,
                "times": trial.seconds / queue.relaxation_s,
                "method": method,
                "run": number,
                "value_s": value,
                "low_s": low,
                "high_s": high,
                "truth_s": truth_s,
                "holds": (low is None or low <= truth_s) and (high is None or truth_s <= high),
            }


def _judgements(
    latency_s: Floats, p: float, seconds: float
) -> dict[str, tuple[float | None, float | None, float | None]]:
    found = quantile(latency_s, [len(latency_s)], p, seconds)
    return {INDEPENDENT: _rank_interval(latency_s, p), PERFKIT: (found.value, found.low, found.high)}


def _rank_interval(latency_s: Floats, p: float) -> tuple[float | None, float | None, float | None]:
    """The textbook's: ranks between which a quantile of independent values lies in 95 of 100 cases (binomial)."""
    from scipy.stats import binom

    ordered, n = np.sort(latency_s), len(latency_s)
    low, high = int(binom.ppf(0.025, n, p)), int(binom.ppf(0.975, n, p)) + 1
    ends = (float(ordered[low - 1]) if low else None, float(ordered[high - 1]) if high <= n else None)
    return (at_probability(ordered, p), *ends)
