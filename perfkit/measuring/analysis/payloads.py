"""Did requests carry different inputs? One input over and over measures that input, or a cache in front of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perfkit.measuring.analysis.measured import Measured
    from perfkit.measuring.analysis.rundata import RunData

LEAST_DIFFERENT = 2


def count_different(run: RunData, measured: Measured) -> int | None:
    """Different payloads among the measured requests; None when it is not known, or there were fewer than two.

    The table knows a payload by its line in the file; how many lines differ at all is in the generator's report.
    """
    rows = measured.rows
    if len(rows) < LEAST_DIFFERENT or "payload" not in rows or not rows["payload"].notna().any():
        return None
    lines = int(rows["payload"].nunique())
    bodies = [int(report["different_payloads"]) for report in run.generator_reports if "different_payloads" in report]
    return min([lines, *bodies])
