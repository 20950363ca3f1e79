"""`perfkit scan`: which value of a setting is best? The curve as a table, its knee and the best point."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from perfkit.errors import ConfigError
from perfkit.measuring.archive.format import SCAN_NAME
from perfkit.showing.cli import options as flags
from perfkit.showing.cli.main import exit_code

if TYPE_CHECKING:
    from perfkit.measuring.scanning.grid import Scan
    from perfkit.measuring.scanning.plan import ScanPlan


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of the command."""
    flags.add_model(parser)
    flags.add_load(parser)
    parser.add_argument(
        "--vary", action="append", default=[], metavar="NAME=V1,V2,…", help="field and its values (repeatable: a grid)"
    )
    flags.add_profile_seconds(parser, "measured time per point, warm-up not counted")
    parser.add_argument(
        "--rounds", type=int, default=2, help="interleaved rounds that a point's time is spread over (default 2)"
    )
    flags.add_p99(parser)
    parser.add_argument("--url", help="scan the load against a service that already runs, instead of launching one")
    parser.add_argument("--resume", action="store_true", help="go on with the unfinished scan in --out")
    flags.add_output(parser, "the scan's own folder (default: a new one in perfkit-runs)")


def run(options: argparse.Namespace) -> int:
    """Measure and print; exit 0 with at least one usable point, 3 when every point is void."""
    from perfkit.measuring.scanning.grid import new_scan_folder, run_scan
    from perfkit.measuring.scanning.host import Given, Launched
    from perfkit.measuring.service import attach
    from perfkit.showing.cli import console

    if options.resume and options.out is None:
        raise ConfigError("--resume needs --out DIR, the folder of the scan to go on with")
    plan = _plan(options)
    folder = options.out or new_scan_folder()
    try:
        with console.scan_progress(options.json) as watch:
            if options.url:
                scan = run_scan(plan, Given(attach(options.url)), folder, watch, options.resume)
            else:
                with Launched() as host:
                    scan = run_scan(plan, host, folder, watch, options.resume)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_how_to_go_on(folder)) from None
    if options.json:
        console.print_json(scan.to_json(options.p99))
    else:
        _print(scan, options.p99)
    return exit_code(scan.points)


def _how_to_go_on(folder: Path) -> str:
    if not (folder / SCAN_NAME).exists():
        return "interrupted before anything was measured"
    flags_ = f"--resume --out {shlex.quote(str(folder))}"
    return f"interrupted; what was measured is kept, go on with the same command and {flags_}"


def _plan(options: argparse.Namespace) -> ScanPlan:
    from perfkit.measuring.scanning.plan import ScanPlan, grid

    load = flags.read_load(options)
    if options.url:
        server, client = flags.split_changes(options.changes, load)
        if server or options.model or options.settings:
            raise ConfigError(
                "--url scans a service that already runs: its settings are not ours to set; vary the load"
            )
        from perfkit import fields

        settings, load = None, fields.replace(load, client)
    else:
        settings, load = flags.read_settings(options, load)
    points = grid(settings, load, flags.read_axes(options.vary, load))
    seconds = max(flags.seconds_of(options, point.load) for point in points)
    return ScanPlan(points=points, seconds=seconds, rounds=options.rounds, seed=options.seed)


def _print(scan: Scan, p99_s: float | None) -> None:
    from perfkit.showing.cli import console
    from perfkit.showing.cli.tables import points_table, remarks
    from perfkit.showing.plots.points import knee_text, loop_text
    from perfkit.showing.report.advice import limit_texts, recommendation

    model = scan.points[0]["settings"].get("model", "service")
    label = " · simulated" if scan.stored.header.simulated else ""
    console.results().print(points_table(scan.points, f"{model} · {loop_text(scan.points)}{label}"))
    for line in remarks(scan.points):
        console.say(line)
    scaling = scan.scaling(p99_s).to_json() if p99_s else scan.fits
    if knee := scaling["knee"]:
        console.say(f"Knee: {knee['setting']} {knee_text(knee)} ({knee['method']})")
    if len(scan.points) > 1:
        for line in limit_texts({"": scaling}):
            console.say(line, style="dim")
    console.say(recommendation(scan.best(p99_s)), style="bold")
    console.say(f"saved in {scan.folder}")
