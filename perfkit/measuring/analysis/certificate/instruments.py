"""Which self-tests of the instruments did a run pass, and did anything disturb it? A failure makes it void."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from perfkit.measuring.analysis.certificate.entry import Entry, held, not_applicable
from perfkit.measuring.analysis.grading import GREW, MOVED, PROFILED, UNANSWERED

if TYPE_CHECKING:
    from perfkit.measuring.analysis.measured import Measured
    from perfkit.measuring.analysis.rundata import RunData
    from perfkit.measuring.analysis.validity.check import Check

FIGURES = {
    "client conservation": "wrong_requests",
    "server conservation": "lost_requests",
    "replies agree": "missing_replies",
    "ledger complete": "missing_rows",
    "clock order": "wrong_requests",
    "stamps present": "missing_stamps",
    "stage sum": "error_ratio",
    "independent latency": "error_ratio",
    "gauge fresh": "stale_rounds",
    "Little": "residual_ratio",
    "interactive law": "residual_ratio",
    "utilisation law": "residual_ratio",
    "throughput bound": "of_bound_ratio",
    "device busy": "busy_ratio",
    "cores used": "cores",
    "generator lateness": "lateness_p99_s",
    "schedule": "anderson_darling",
    "achieved rate": "achieved_ratio",
    "generator CPU": "cores",
    "generator core": "shared_cores",
    "steal": "stolen_ratio",
}
"""The figure of each self-test, named with its unit."""

_ORIGIN = "by definition: figures of something else are no figures of the service"


def certify_instruments(run: RunData, measured: Measured, checks: Sequence[Check]) -> list[Entry]:
    """One entry a self-test, and one for each thing that may have disturbed the run."""
    return [*map(entry_of, checks), *_disturbances(run, measured)]


def entry_of(check: Check) -> Entry:
    """A self-test as an entry of the certificate."""
    if check.passed is None:
        return not_applicable(check.name, check.origin, "void", check.reason, check.threshold)
    status, costs, reason = held("void", [] if check.passed else [f"{check.name}: {check.reason}"])
    return Entry(
        name=check.name,
        status=status,
        figures={FIGURES[check.name]: check.figure},
        threshold=check.threshold,
        origin=check.origin,
        costs=costs,
        reason=reason,
    )


def _disturbances(run: RunData, measured: Measured) -> list[Entry]:
    known = (
        ("no profiler", run.profiled, PROFILED),
        ("settings kept", run.settings_moved, MOVED),
        ("nothing compiled", run.graphs_grew, GREW),
    )
    return [*(_undisturbed(*one) for one in known), _answers(measured)]


def _undisturbed(name: str, happened: bool, text: str) -> Entry:
    status, costs, reason = held("void", [text] if happened else [])
    return Entry(name=name, status=status, figures={}, threshold=None, origin=_ORIGIN, costs=costs, reason=reason)


def _answers(measured: Measured) -> Entry:
    status, costs, reason = held("void", [] if measured.replies else [UNANSWERED])
    return Entry(
        name="answers",
        status=status,
        figures={"replies": measured.replies},
        threshold=1,
        origin="by definition: without an answer nothing was measured",
        costs=costs,
        reason=reason,
    )
