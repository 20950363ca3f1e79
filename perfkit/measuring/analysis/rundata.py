"""What does the analysis need to know about a run? One frozen record of tables and facts, no disk, no clock."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from perfkit.measuring.analysis.precision import Goal


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RunData:
    """One service at one setting under one load, as recorded.

    A foreign service may lack the server's half: its instants are NA, batches and series are empty,
    gauges and counters are empty lists, and `settings` is None.
    """

    requests: pd.DataFrame
    batches: pd.DataFrame
    series: pd.DataFrame
    rounds: Sequence[Mapping[str, Any]]
    gauges: Sequence[Mapping[str, Any]]
    counters: Sequence[Mapping[str, Any]]
    generator_reports: Sequence[Mapping[str, Any]]
    load: Mapping[str, Any]
    settings: Mapping[str, Any] | None
    simulated: bool
    usable_cores: int
    core_limit: float | None = None  # a quota need not be a whole number of cores
    profiled: bool
    settings_moved: bool = False  # somebody changed a setting while the run went on
    graphs_grew: bool = False  # the server compiled while the run went on
    gpus: Sequence[Mapping[str, Any]] = ()  # what each GPU is and does not tell, as its collector wrote it down
    server_cpus: Sequence[int] = ()  # the cores that the server may run on; empty when nobody knows
    environment: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # governor and load of the machine
    goal: Goal | None = None  # how well a quantile was to be known before the run might end
    loads_beside: int = 0  # other loads on the service meanwhile; their requests are none of this run's
    started_ns: int
    ended_ns: int

    @property
    def is_closed_loop(self) -> bool:
        """Whether a fixed number of users waits for replies (else requests arrive on a schedule)."""
        return self.load.get("loop") == "closed"

    @property
    def steps(self) -> Sequence[Mapping[str, Any]]:
        """The parts of a load that changes its level, of the first round; empty for a load at one level."""
        return self.generator_reports[0].get("steps") or () if self.generator_reports else ()

    @property
    def users(self) -> int | None:
        """Users of the closed loop; None for an open loop, and where their number changed on purpose."""
        return int(self.load["concurrency"]) if self.is_closed_loop and not self.steps else None

    @property
    def think_s(self) -> float:
        """Mean pause of a closed loop's user between a reply and the next request."""
        return float(self.load.get("think_time_s") or 0.0)

    @property
    def max_batch(self) -> int | None:
        """The most requests one model call may take; None when the settings are not known."""
        return None if self.settings is None else int(self.settings["batch"]["max_size"])
