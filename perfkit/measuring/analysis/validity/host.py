"""Was the machine the run's own?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit import units
from perfkit.measuring.analysis.series import stolen_ratio
from perfkit.measuring.analysis.validity.check import Check, at_most, not_judged

if TYPE_CHECKING:
    from perfkit.measuring.analysis.measured import Measured
    from perfkit.measuring.analysis.rundata import RunData

MOST_STOLEN = 0.05
ORIGIN = "judgement: stolen time is recorded, and voids a run above 5 %"


def check_steal(run: RunData, measured: Measured) -> Check:
    """The hypervisor gave little of the cores' time to others."""
    stolen = stolen_ratio(run, measured.windows)
    if stolen is None:
        return not_judged("steal", MOST_STOLEN, ORIGIN, "steal was not recorded")
    text = f"{units.format_percent(stolen)} of the cores' time went to other machines"
    return at_most("steal", stolen, MOST_STOLEN, ORIGIN, text)
