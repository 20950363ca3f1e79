"""`perfkit runs history`: at which run did a figure move to another level?"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from perfkit.showing.cli import runs

if TYPE_CHECKING:
    from perfkit.measuring.comparing.history import History

METRICS = {"throughput": "throughput_rps", "p50": "p50_s", "p95": "p95_s", "p99": "p99_s"}
_WORSE = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of the action."""
    runs.add_archive(parser)
    parser.add_argument("--metric", choices=tuple(METRICS), default="throughput", help="figure (default throughput)")
    parser.add_argument("--model", help="only runs of this model")
    runs.add_json(parser)


def run(options: argparse.Namespace) -> int:
    """The changes of each setting's history; exit 1 when one of them was for the worse."""
    from perfkit.measuring.analysis.compare.replicate import METRICS as ALL
    from perfkit.measuring.comparing.history import histories, read_archive
    from perfkit.showing.cli import console

    archive = read_archive(options.folder)
    wanted = [one for one in archive.manifests if options.model in (None, one.settings.get("model"))]
    metric = next(one for one in ALL if one.name == METRICS[options.metric])
    found = list(histories(wanted, metric))
    if options.json:
        simulated = any(one.manifest.simulated for one in found)
        document = {"schema": 1, "simulated": simulated, "histories": [one.to_json() for one in found]}
        console.print_json(document | {"unreadable": list(archive.unreadable)})
    else:
        for line in (line for one in found for line in _lines(one)):
            console.say(line)
        for line in archive.unreadable:
            console.remark(f"left out: {line}")
        if not found:
            console.remark(f"no certified runs in {options.folder}; perfkit load, scan or compare makes some")
    return _WORSE if any(one.got_worse for one in found) else 0


def _lines(history: History) -> Iterator[str]:
    """What the history is of, then each change with its run, size and interval."""
    from perfkit.measuring.analysis.compare.wording import interval_text, value_text
    from perfkit.measuring.comparing.snapshot import load_text, settings_text
    from perfkit.units import format_change, format_number

    manifest, metric = history.manifest, history.metric
    label = " · simulated" if manifest.simulated else ""
    out = f", {history.left_out} without this figure" if history.left_out else ""
    settings = f"{settings_text(manifest.settings)} · {load_text(manifest.load)}"
    yield f"{metric.title} of {manifest.title} · {settings}{label}: {len(history.values)} runs{out}"
    for point in history.change_points:
        was, now = value_text(metric, point.before), value_text(metric, point.after)
        change, interval = format_change(point.shift.value_ratio), interval_text(point.shift)
        verdict = "worse" if point in history.got_worse else "better"
        yield (
            f"  {verdict} since run {history.run_ids[point.index]} ({history.created[point.index]}): {was} → {now} "
            f"({change}{f', 95 % interval {interval}' if interval else ''}, "
            f"{point.shift.runs_a} runs before, {point.shift.runs_b} after, p = {format_number(point.p_value)})"
        )
    if not history.change_points:
        yield "  no change of level"
