"""Did the instruments work? Every self-test of a run; one that fails makes the run void."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit.measuring.analysis.ledger import stage_table
from perfkit.measuring.analysis.validity.bounds import check_busy, check_cores, check_throughput_bound
from perfkit.measuring.analysis.validity.check import Check
from perfkit.measuring.analysis.validity.conservation import (
    check_client_counts,
    check_ledger_complete,
    check_replies_agree,
    check_server_counts,
)
from perfkit.measuring.analysis.validity.generator import (
    check_achieved,
    check_generator_cpu,
    check_lateness,
    check_schedule,
)
from perfkit.measuring.analysis.validity.host import check_steal
from perfkit.measuring.analysis.validity.littles import check_gauge, check_interactive_law, check_little
from perfkit.measuring.analysis.validity.placement import check_cores_apart
from perfkit.measuring.analysis.validity.stamps import (
    check_clock_order,
    check_middleware,
    check_stage_sum,
    check_stamps_present,
    served_rows,
)
from perfkit.measuring.analysis.validity.utilisation import check_utilisation

if TYPE_CHECKING:
    from perfkit.measuring.analysis.measured import Measured
    from perfkit.measuring.analysis.rundata import RunData

__all__ = ["Check", "run_checks"]


def run_checks(run: RunData, measured: Measured) -> tuple[Check, ...]:
    """All self-tests in the order in which they are printed."""
    return (
        check_client_counts(run),
        check_server_counts(run),
        check_replies_agree(run),
        check_ledger_complete(run),
        check_clock_order(run),
        check_stamps_present(run),
        check_stage_sum(stage_table(served_rows(measured))),
        check_middleware(measured),
        check_gauge(run),
        check_little(run),
        check_interactive_law(run, measured),
        check_utilisation(run, measured),
        check_throughput_bound(run, measured),
        check_busy(run, measured),
        check_cores(run, measured),
        check_lateness(run, measured),
        check_schedule(run),
        check_achieved(run),
        check_generator_cpu(run),
        check_cores_apart(run),
        check_steal(run, measured),
    )
