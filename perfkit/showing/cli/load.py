"""`perfkit load`: what throughput and latency does a running service give under a load?"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from perfkit import fields
from perfkit.showing.cli import options as flags
from perfkit.showing.cli.main import exit_code

if TYPE_CHECKING:
    from perfkit.measuring.experiment import Run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of the command."""
    parser.add_argument("url", metavar="URL", help="where requests go: http://host:port (then /predict) or with a path")
    flags.add_load(parser)
    flags.add_set(parser)
    parser.add_argument(
        "--beside",
        action="append",
        default=[],
        metavar="NAME=VALUE,...",
        help="another load at the same time, reported apart: concurrency=1,lane=online, or rate_rps=400,lane=offline "
        "for an open loop (repeatable)",
    )
    parser.add_argument(
        "--pid", type=int, metavar="PID", help="the service's process here: records its threads, counters and commit"
    )
    flags.add_seconds(parser, 10.0, "measured time, warm-up not counted")
    flags.add_parent(parser)


def run(options: argparse.Namespace) -> int:
    """Measure and print one point, and one for each load beside it; exit 3 when all are void."""
    from perfkit.errors import ConfigError
    from perfkit.measuring.experiment import measure_together
    from perfkit.measuring.service import attach
    from perfkit.showing.cli import console
    from perfkit.showing.plots.points import loop_text

    load = flags.read_load(options)
    server, client = flags.split_changes(options.changes, load)
    if server:
        raise ConfigError(
            f"{next(iter(server))} belongs to the server, which perfkit load does not start; set it there"
        )
    load = fields.replace(load, client)
    loads = {"": load, **flags.read_beside(options.beside, load)}
    with console.round_progress(f"load on {options.url}", options.seconds, options.json) as watch:
        runs = measure_together(attach(options.url, options.pid), loads, options.seconds, options.out, watch)
    if options.json:
        found, *beside = ({**run.point, "folder": str(run.folder)} for run in runs.values())
        console.print_json({"schema": 1, **found} | ({"beside": beside} if beside else {}))
    else:
        for text, run in runs.items():
            _tell(run, f"{text or loop_text([run.point])} · {options.url}")
    return exit_code([run.point for run in runs.values()])


def _tell(run: Run, title: str) -> None:
    from perfkit.showing.cli import console
    from perfkit.showing.cli.tables import points_table, remarks

    console.results().print(points_table([run.point], title))
    for line in remarks([run.point]):
        console.say(line)
    console.say(f"saved in {run.folder}")
