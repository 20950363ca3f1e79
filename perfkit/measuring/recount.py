"""What do the raw requests of a saved run say of its rate and latency, read anew?

For tables too long to hold whole: only the columns that the question needs are read, after every byte of the file
was checked. The figures are those of the requests alone; whether the run deserves them is its certificate's affair.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from perfkit.errors import ArchiveError
from perfkit.measuring.analysis.blocks import Interval
from perfkit.measuring.analysis.latency import Quantile, quantile
from perfkit.measuring.analysis.measured import measure_windows
from perfkit.measuring.analysis.rundata import RunData
from perfkit.measuring.analysis.summary import QUANTILES
from perfkit.measuring.analysis.throughput import throughput
from perfkit.measuring.archive.folder import StoredRun

_COLUMNS = ("request_id", "round", "end_state", "scheduled_ns", "sent_ns", "received_ns")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Recount:
    """Good replies a second, and quantiles of the latency from the schedule, of all measured windows together."""

    requests: int
    throughput: Interval
    latency: Mapping[str, Quantile]

    def to_json(self) -> dict[str, Any]:
        """As `perfkit runs show --recount --json` prints it."""
        latency_s = {name: one.to_json() for name, one in self.latency.items()}
        return {"requests": self.requests, "throughput_rps": self.throughput.to_json(), "latency_s": latency_s}


def recount(run: StoredRun) -> Recount:
    """Rate and quantiles of a saved run with their 95 % intervals; raises ArchiveError."""
    data = _run_data(run)
    measured = measure_windows(data)
    return Recount(
        requests=len(measured.rows),
        throughput=throughput(measured, data.think_s, data.is_closed_loop),
        latency={
            name: quantile(measured.latency_s, measured.sizes, p, measured.seconds) for name, p in QUANTILES.items()
        },
    )


def _run_data(run: StoredRun) -> RunData:
    """What finding the measured windows takes; the rest is left empty."""
    requests, manifest = run.columns("requests", _COLUMNS), run.manifest
    if not manifest.rounds:
        raise ArchiveError(f"{run.path} tells no rounds, so nothing says when its load ran; measure again")
    return RunData(
        requests=requests,
        batches=requests.iloc[:0],
        series=requests.iloc[:0],
        rounds=manifest.rounds,
        gauges=(),
        counters=(),
        generator_reports=(),
        load=manifest.load,
        settings=None,
        simulated=manifest.simulated,
        usable_cores=1,  # not asked for
        profiled=False,
        started_ns=manifest.rounds[0]["started_ns"],
        ended_ns=manifest.rounds[-1]["ended_ns"],
    )
