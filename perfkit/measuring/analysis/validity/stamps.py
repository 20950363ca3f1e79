"""Are the ledger's instants complete, in order, and do they add up to a latency taken elsewhere?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from perfkit.clock import NS_PER_S
from perfkit.measuring.analysis.blocks import Floats
from perfkit.measuring.analysis.instants import instant_matrix
from perfkit.measuring.analysis.ledger import (
    SERVER_INSTANTS,
    TOTAL,
    carried_forward,
    has_server_half,
    stage_means,
)
from perfkit.measuring.analysis.validity.check import Check, at_most, not_judged
from perfkit.measuring.analysis.warmup import OK
from perfkit.records import CLIENT_INSTANTS, INSTANTS

if TYPE_CHECKING:
    import pandas as pd

    from perfkit.measuring.analysis.measured import Measured
    from perfkit.measuring.analysis.rundata import RunData

ORDER_ORIGIN = "by definition: the instants are always in this order"
MOST_SUM_ERROR = 0.01
SUM_ORIGIN = "judgement: stages tile the latency, so that their means add up to it within 1 %"
MOST_MIDDLEWARE_ERROR_S = 100e-6
MIDDLEWARE_ORIGIN = (
    "1 % as for the stage sum, or 100 µs for the event loop's hand-over between the two clocks (judgement)"
)
ALWAYS = ("accepted", "parsed", "replied")


def check_clock_order(run: RunData) -> Check:
    """No instant of a request lies before an earlier one of it."""
    at = instant_matrix(run.requests, INSTANTS, run.started_ns)
    steps = at[:, 1:] - carried_forward(at)[:, :-1]
    wrong = int((steps < 0).any(axis=1).sum())
    where = [INSTANTS[column + 1] for column in np.flatnonzero((steps < 0).any(axis=0))]
    text = f"{wrong} requests have an instant before the one it must follow: {', '.join(where)}"
    return at_most("clock order", wrong, 0, ORDER_ORIGIN, text)


def check_stamps_present(run: RunData) -> Check:
    """A served request has all the stamps that served requests have: the path is the same for all in a run."""
    name, origin = "stamps present", "by definition: a dropped stamp voids the run"
    served = run.requests[(run.requests["end_state"] == OK).to_numpy(dtype=bool) & has_server_half(run.requests)]
    if not len(served):
        return not_judged(name, 0, origin, "no server ledger")
    # A run from before an instant was recorded lacks its column.
    known = [instant for instant in SERVER_INSTANTS if f"{instant}_ns" in served]
    present = {instant: served[f"{instant}_ns"].notna() for instant in known} | {"batch": served["batch_id"].notna()}
    client = served[[f"{instant}_ns" for instant in CLIENT_INSTANTS]].notna()
    ours = client.any(axis=1)
    missing = {instant: int((~client[f"{instant}_ns"] & ours).sum()) for instant in CLIENT_INSTANTS}
    for instant, seen in present.items():
        missing[instant] = int((~seen).sum()) if instant in ALWAYS or seen.any() else 0
    wrong = sum(missing.values())
    text = ", ".join(f"{instant} is missing in {count}" for instant, count in missing.items() if count)
    return at_most(name, wrong, 0, origin, f"of {len(served)} served requests: {text}")


def check_stage_sum(table: pd.DataFrame) -> Check:
    """The mean stages of a stage table add up to its mean latency."""
    name = "stage sum"
    if not len(table):
        return not_judged(name, MOST_SUM_ERROR, SUM_ORIGIN, "no server ledger")
    whole = float(table[TOTAL].mean())
    parts = sum(mean for mean in stage_means(table).values() if mean is not None)
    error = abs(parts - whole) / whole if whole > 0 else 0.0
    return at_most(name, error, MOST_SUM_ERROR, SUM_ORIGIN, "the stages do not add up to the latency")


def check_middleware(measured: Measured) -> Check:
    """Accepted to replied agrees with the latency that a layer around the service took by itself."""
    name = "independent latency"
    rows = served_rows(measured)
    if not len(rows) or "middleware_ns" not in rows or not rows["middleware_ns"].notna().any():
        return not_judged(name, MOST_SUM_ERROR, MIDDLEWARE_ORIGIN, "no latency was taken independently")
    inside = (rows["replied_ns"] - rows["accepted_ns"]).to_numpy(dtype="float64", na_value=np.nan)
    taken = rows["middleware_ns"].to_numpy(dtype="float64", na_value=np.nan)
    error_s, whole_s = _mean(np.abs(inside - taken)) / NS_PER_S, _mean(taken) / NS_PER_S
    allowed = max(MOST_SUM_ERROR, MOST_MIDDLEWARE_ERROR_S / whole_s) if whole_s > 0 else MOST_SUM_ERROR
    relative = error_s / whole_s if whole_s > 0 else 0.0
    return at_most(
        name, relative, allowed, MIDDLEWARE_ORIGIN, "the ledger's total differs from the latency taken around it"
    )


def _mean(values: Floats) -> float:
    return float(np.nanmean(values))


def served_rows(measured: Measured) -> pd.DataFrame:
    """Measured requests that were answered well and that the server's ledger knows."""
    rows = measured.rows
    whole = (rows["end_state"] == OK).to_numpy(dtype=bool) & has_server_half(rows)
    served: pd.DataFrame = rows[whole & rows["received_ns"].notna().to_numpy(dtype=bool)]
    return served
