"""What do the raw requests of a saved run say of its rate and latency, read anew?

For tables too long to hold whole: only the columns that the question needs are read, after every byte of the file
was checked. The figures are those of the requests alone; whether the run deserves them is its certificate's affair.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from perfkit.measuring.analysis.blocks import Interval
from perfkit.measuring.analysis.latency import Quantile, quantile
from perfkit.measuring.analysis.measured import measure_windows
from perfkit.measuring.analysis.summary import QUANTILES
from perfkit.measuring.analysis.throughput import throughput
from perfkit.measuring.archive.folder import RunContents, StoredRun
from perfkit.measuring.experiment import run_data

_COLUMNS = ("request_id", "round", "end_state", "scheduled_ns", "sent_ns", "received_ns")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Recount:
    """Good replies a second, and quantiles of the latency from the schedule, of all measured windows together."""

    requests: int
    throughput: Interval
    latency: Mapping[str, Quantile]


def recount(run: StoredRun) -> Recount:
    """Rate and quantiles of a saved run with their 95 % intervals; raises ArchiveError."""
    requests = run.columns("requests", _COLUMNS)
    nothing = requests.iloc[:0]
    tables = {"requests": requests, "batches": nothing, "series": nothing}
    data = run_data(RunContents(manifest=run.manifest, tables=tables))
    measured = measure_windows(data)
    return Recount(
        requests=len(measured.rows),
        throughput=throughput(measured, data.think_s, data.is_closed_loop),
        latency={
            name: quantile(measured.latency_s, measured.sizes, p, measured.seconds) for name, p in QUANTILES.items()
        },
    )
