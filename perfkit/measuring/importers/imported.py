"""What does a foreign result file say, in one form for all formats?

Times are seconds and rates are per second, whatever the file wrote. A figure that the file does not
hold is None, never a zero.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from perfkit.measuring.analysis.certificate import Entry
from perfkit.measuring.analysis.grading import Label
from perfkit.measuring.analysis.latency import Quantile
from perfkit.measuring.collectors.collector import SeriesRow
from perfkit.measuring.importers.stacktree import FlameTree

Scope = Literal["request", "window", "cumulative", "none"]
Basis = Literal["scheduled", "sent", "unknown", "none"]
Loop = Literal["closed", "open", "unknown"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """How many rows (lines, events, samples) were read, and what became of them."""

    read: int
    kept: int
    dropped: Mapping[str, int]  # reason -> how many


class Tally:
    """Counts rows while they are read."""

    def __init__(self) -> None:
        self.kept = 0
        self.dropped: Counter[str] = Counter()

    def rows(self) -> Rows:
        """The counts so far."""
        return Rows(read=self.kept + self.dropped.total(), kept=self.kept, dropped=dict(self.dropped))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How the times of a format are to be read.

    `scope`: one latency per request, one figure per window of time, or one over the whole run.
    `basis`: whether a latency counts from the scheduled or from the actual send.
    """

    unit: str
    clock: str
    scope: Scope
    basis: Basis


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One result: a run, a load level of it, or the part of one endpoint.

    `row` counts the data rows of a table from 1. `loop` is closed when each client sends its next request
    after the reply and open when requests follow a rate; `has_think_time` says whether clients may pause
    in between (None: the file does not say). `requests` counts those without an answer too.
    """

    name: str
    row: int | None = None
    loop: Loop = "unknown"
    has_think_time: bool | None = None
    concurrency: float | None = None
    offered_rps: float | None = None
    throughput_rps: float | None = None
    requests: int | None = None
    errors: int | None = None
    timeouts: int | None = None
    unsent: int | None = None  # requests that the generator planned and could not start
    new_connections: int | None = None
    duration_s: float | None = None
    mean_s: float | None = None
    min_s: float | None = None
    max_s: float | None = None
    median_s: float | None = None  # where the file gives one beside its percentiles
    good_mean_s: float | None = None
    error_mean_s: float | None = None
    percentiles_s: Mapping[float, float] = dataclasses.field(default_factory=dict)  # 0.99 -> seconds, as the file says
    is_interpolated: bool = False  # percentiles read off the buckets of a histogram
    grade: Label | None = None  # only of single requests; a summary cannot be graded
    reasons: tuple[str, ...] = ()
    entries: tuple[Entry, ...] = ()  # of the certificate behind the grade
    quantiles: Mapping[float, Quantile] = dataclasses.field(
        default_factory=dict
    )  # with intervals, from single requests

    def percentile(self, p: float) -> float | None:
        """A percentile in seconds; None where the file has none."""
        return self.percentiles_s.get(p)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Requests:
    """Single answered requests in the order of their start, in columns of equal length.

    `stride` above 1: only every so many-th of a file with more requests than fit in memory.
    """

    start_ns: NDArray[np.int64]
    latency_ns: NDArray[np.int64]
    is_error: NDArray[np.bool_]
    name: NDArray[np.uint16]  # index into names
    names: tuple[str, ...]
    stride: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """How much of a profile or a trace one name holds: alone, and with all that it called."""

    name: str
    own: float
    total: float
    count: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Where samples or time went; `total` in `unit`, the heaviest names first."""

    name: str
    unit: str  # samples, s, ns of CPU, …
    total: float
    samples: int
    top: tuple[Weight, ...]
    threads: Mapping[str, float] = dataclasses.field(default_factory=dict)
    states: Mapping[str, int] = dataclasses.field(default_factory=dict)  # of a dump: how many threads were what
    tree: FlameTree | None = None  # every path of calls; not in `--json`


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One series of a scrape: a value since the process started, or of this instant."""

    name: str
    labels: Mapping[str, str]
    kind: str
    value: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """All that was read from one file."""

    path: str
    format: str
    rows: Rows
    timing: Timing
    levels: tuple[Level, ...] = ()
    profiles: tuple[Profile, ...] = ()
    metrics: tuple[Metric, ...] = ()
    series: tuple[SeriesRow, ...] = ()  # values over time, named and in the units of perfkit's own collectors
    requests: Requests | None = None
    is_range: bool = False  # whether the levels are one service under growing load
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        profiles = tuple(dataclasses.replace(profile, tree=None) for profile in self.profiles)
        document = dataclasses.asdict(dataclasses.replace(self, series=(), requests=None, profiles=profiles))
        del document["requests"]
        for profile in document["profiles"]:
            del profile["tree"]
        document["series"] = [row._asdict() for row in self.series]
        for level in document["levels"]:
            level["percentiles_s"] = {percent_name(p): value for p, value in level["percentiles_s"].items()}
            level["quantiles"] = {percent_name(p): value for p, value in level["quantiles"].items()}
        return document


def percent_name(p: float) -> str:
    """0.99 -> p99, 0.999 -> p99.9."""
    return f"p{round(100 * p, 6):g}"
