"""Did the load generator keep off the server's cores?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit.measuring.analysis.validity.check import Check, at_most, not_judged
from perfkit.settings.server import is_light

if TYPE_CHECKING:
    from perfkit.measuring.analysis.rundata import RunData

ORIGIN = "by design: a device that needs no core leaves one to the server and one to the generator"
_NAME = "generator core"


def check_cores_apart(run: RunData) -> Check:
    """No core served both, where there are two and the model needs none of them."""
    if run.usable_cores < 2:
        return not_judged(_NAME, 0, ORIGIN, "there is only one core")
    model = str((run.settings or {}).get("model", ""))
    if run.settings is not None and not run.simulated and not is_light(model):
        return not_judged(_NAME, 0, ORIGIN, "the model computes on all cores; the generator's share of them is judged")
    generators = [one for report in run.generator_reports for one in report.get("generators") or [report]]
    used = {int(core) for generator in generators for core in generator.get("cpus") or ()}
    if not run.server_cpus or not used:
        return not_judged(_NAME, 0, ORIGIN, "which cores server and generator used is not known")
    shared = sorted(used & set(run.server_cpus))
    cores = ", ".join(map(str, shared))
    return at_most(_NAME, len(shared), 0, ORIGIN, f"server and generator ran on the same cores ({cores})")
