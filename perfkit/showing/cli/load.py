"""`perfkit load`: what throughput and latency does a running service give under a load?"""

from __future__ import annotations

import argparse

from perfkit import fields
from perfkit.showing.cli import options as flags
from perfkit.showing.cli.main import exit_code


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of the command."""
    parser.add_argument("url", metavar="URL", help="where requests go: http://host:port (then /predict) or with a path")
    flags.add_load(parser)
    flags.add_set(parser)
    flags.add_seconds(parser, 10.0, "measured time, warm-up not counted")
    flags.add_parent(parser)


def run(options: argparse.Namespace) -> int:
    """Measure and print one point; exit 3 when it is void."""
    from perfkit.errors import ConfigError
    from perfkit.measuring.experiment import measure
    from perfkit.measuring.service import attach
    from perfkit.showing.cli import console
    from perfkit.showing.cli.tables import points_table, remarks
    from perfkit.showing.plots.points import loop_text

    load = flags.read_load(options)
    server, client = flags.split_changes(options.changes, load)
    if server:
        raise ConfigError(
            f"{next(iter(server))} belongs to the server, which perfkit load does not start; set it there"
        )
    with console.round_progress(f"load on {options.url}", options.seconds, options.json) as watch:
        result = measure(attach(options.url), fields.replace(load, client), options.seconds, options.out, watch)
    if options.json:
        console.print_json({"schema": 1, **result.point, "folder": str(result.folder)})
    else:
        console.results().print(points_table([result.point], f"{loop_text([result.point])} · {options.url}"))
        for line in remarks([result.point]):
            console.say(line)
        console.say(f"saved in {result.folder}")
    return exit_code([result.point])
