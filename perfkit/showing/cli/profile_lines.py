"""What does a load's profile add to its point? Its steps as a table, burstiness, and what each generator did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group

from perfkit.showing.cli.tables import points_table
from perfkit.showing.plots.points import count_text, knee_text
from perfkit.showing.report.rows import fact_text
from perfkit.units import ABSENT, format_duration, format_number, format_percent, format_rate


def steps_table(point: Mapping[str, Any]) -> Group:
    """The steps at one level, a row each, as a scan over the level would show them."""
    return points_table([step for step in point["steps"] if "varied" in step], "each step at one level by itself")


def profile_lines(point: Mapping[str, Any], reports: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """One line for each thing worth saying; nothing for a plain load."""
    for step in point.get("steps") or ():
        if step["grade"] in ("unsteady", "void"):
            yield f"{step['name']}: {step['grade']}, {count_text(step['requests'])} requests: {step['reasons'][0]}"
    if point.get("steps") and point.get("knee"):
        yield f"Knee: {point['knee']['setting']} {knee_text(point['knee'])} ({point['knee']['method']})"
    if "recovery_s" in point:
        yield _recovery(point["recovery_s"])
    yield from _sets(point.get("payload_sets", ()))
    yield from _soak(point.get("soak", {}))
    if "arrivals" in point:
        yield _burstiness(point["arrivals"], point["load"]["bursts"])
    for report in reports:
        yield from _generators(report.get("generators") or ())


def _recovery(recovery_s: float | None) -> str:
    if recovery_s is None:
        return "after the spike the median latency did not come back to within a tenth of what it was before"
    return f"after the spike the median latency was back within a tenth after {format_duration(recovery_s)}"


def _sets(sets: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for one in sets:
        shares = f"{format_percent(one['had_ratio'])} of the requests, {format_percent(one['asked_ratio'])} asked for"
        if "latency_s" not in one:
            yield f"payload set {one['name']}: {shares}: {one['grade']}"
            continue
        tails = (f"{name.upper()} {_quantile(found)}" for name, found in one["latency_s"].items())
        yield f"payload set {one['name']}: {shares}; {', '.join(tails)} ({one['grade']})"


def _quantile(found: Mapping[str, Any]) -> str:
    if found["value"] is not None:
        return format_duration(found["value"])
    return ABSENT if found["low"] is None else f"at least {format_duration(found['low'])}"


def _soak(found: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for name, one in found.items():
        first, last = (fact_text(name, one[end]) for end in ("first", "last"))
        grew = "grew" if one["is_growing"] else "did not grow"
        yield f"soak: {name.rpartition('_')[0] or name} {grew}: {first} in the first quarter, {last} in the last"


def _burstiness(found: Mapping[str, Any], bursts: Mapping[str, Any]) -> str:
    levels = f"{format_rate(found['burst_rps'])} in bursts of {format_duration(bursts['burst_s'])}"
    levels += f", {format_rate(found['quiet_rps'])} for {format_duration(bursts['quiet_s'])} between"
    second, drawn = found["dispersion_index_1s"], found["drawn_dispersion_index_1s"]
    seen = "" if drawn is None else f" (as drawn {format_number(drawn)})"
    index = f"index of dispersion {format_number(found['dispersion_index'])}"
    return f"bursty arrivals: {levels}; {index}, of counts a second {format_number(second)}{seen}; Poisson has 1"


def _generators(generators: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for number, one in enumerate(generators, 1):
        core = "" if one["core_ratio"] is None else f", {format_percent(one['core_ratio'])} of a core"
        late = f"P99 of its lateness {format_duration(one['lateness_p99_s'])}"
        yield f"generator {number} of {len(generators)}: {count_text(one['scheduled'])} requests, {late}{core}"
