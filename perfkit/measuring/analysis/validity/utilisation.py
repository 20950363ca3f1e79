"""Does the model work that was recorded explain how busy the workers were?

Utilisation law (Denning and Buzen 1978): U = X D. X counts requests that came back to the client, D is the
batches' computing time over their sizes, U the time that batches covered in the windows. A batch that was lost,
counted twice, or of another size than it says moves one side only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from perfkit import units
from perfkit.clock import NS_PER_S
from perfkit.measuring.analysis.instants import overlap_ns, relative_ns
from perfkit.measuring.analysis.validity.check import Check, at_most, not_judged
from perfkit.measuring.analysis.warmup import OK

if TYPE_CHECKING:
    from perfkit.measuring.analysis.measured import Measured
    from perfkit.measuring.analysis.rundata import RunData

MOST_RESIDUAL = 0.03
ORIGIN = "utilisation law, Denning and Buzen 1978; within 3 %, or the computing of batches that the windows' edges cut"
_NAME = "utilisation law"


def check_utilisation(run: RunData, measured: Measured) -> Check:
    """|U - X D| / U over the measured windows."""
    missing = _why_not(run, measured)
    if missing:
        return not_judged(_NAME, MOST_RESIDUAL, ORIGIN, missing)
    start, end = (relative_ns(run.batches, name, run.started_ns) for name in ("compute_started", "compute_ended"))
    spans = [(window.start_ns, window.end_ns) for window in measured.windows]
    inside = np.sum([overlap_ns(start, end, span) for span in spans], axis=0)
    sizes = run.batches["size"].to_numpy(dtype=np.float64)
    touched = inside > 0
    busy_s = float(inside.sum()) / NS_PER_S
    if busy_s <= 0:
        return not_judged(_NAME, MOST_RESIDUAL, ORIGIN, "no batch computed while it was measured")
    demand_s = float((end - start)[touched].sum()) / NS_PER_S / float(sizes[touched].sum())
    work_s = _computed(run, measured) * demand_s
    is_cut = touched & (inside < end - start)
    cut_s = float((end - start)[is_cut].sum()) / NS_PER_S
    allowed = max(MOST_RESIDUAL, cut_s / busy_s)
    text = f"the model computed for {units.format_duration(busy_s)}, X D makes it {units.format_duration(work_s)}"
    return at_most(_NAME, abs(busy_s - work_s) / busy_s, allowed, ORIGIN, text)


def _why_not(run: RunData, measured: Measured) -> str:
    if not len(run.batches) or measured.replies == 0:
        return "no batches were recorded"
    if run.loads_beside:
        return "other loads shared the batches"
    if bool((run.requests["end_state"] != OK).any()):
        return "requests that failed may have cost the model time without a reply"
    return ""


def _computed(run: RunData, measured: Measured) -> int:
    """Requests that came back and whose computing ended in a window."""
    ended = relative_ns(run.requests, "compute_ended", run.started_ns)
    answered = run.requests["received_ns"].notna().to_numpy(dtype=bool)
    inside = (((ended > span.start_ns) & (ended <= span.end_ns) & answered).sum() for span in measured.windows)
    return int(sum(inside))
