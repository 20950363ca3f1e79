"""`perfkit size`: what do the articles' sizing formulas give, and what does a measurement say of them?"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfkit.errors import ConfigError

if TYPE_CHECKING:
    from perfkit.measuring.analysis.sizing import Sizing


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of the command."""
    parser.add_argument("folder", type=Path, nargs="?", help="a run, or a scan, of which the best point is taken")
    parser.add_argument("--rate", type=float, metavar="RPS", help="without a folder: requests a second")
    parser.add_argument("--time", type=float, metavar="S", help="without a folder: seconds that one request takes")
    parser.add_argument("--wait", type=float, metavar="S", help="acceptable wait in the queue, for its depth")
    parser.add_argument("--cores", type=int, metavar="N", help="cores (default: those of the run's machine)")
    parser.add_argument("--json", action="store_true", help="print one JSON document on stdout and nothing else")


def run(options: argparse.Namespace) -> int:
    """Print a row for each formula."""
    from perfkit.showing.cli import console
    from perfkit.showing.cli.sizes_table import sizes_table

    about, simulated, found = _of_demand(options) if options.folder is None else _of_folder(options)
    if options.json:
        rows = [one.to_json() for one in found]
        console.print_json({"schema": 1, "simulated": simulated, "about": about, "sizes": rows})
        return 0
    console.results().print(sizes_table(found, about))
    for one in dict.fromkeys(sizing.formula for sizing in found):
        console.say(f"{one.name}: {one.text}; {one.source}", style="dim")
    return 0


def _of_demand(options: argparse.Namespace) -> tuple[str, bool, list[Sizing]]:
    from perfkit.measuring.analysis.sizing import Demand, size_demand

    if options.rate is None or options.time is None:
        raise ConfigError("size got neither a folder nor --rate and --time; give one or the other")
    demand = Demand(rate_rps=options.rate, time_s=options.time, wait_s=options.wait, cores=options.cores)
    return "formulas only, nothing measured", False, size_demand(demand)


def _of_folder(options: argparse.Namespace) -> tuple[str, bool, list[Sizing]]:
    from perfkit.measuring.analysis.sizing import size_point

    if options.rate is not None or options.time is not None or options.wait is not None:
        raise ConfigError("--rate, --time and --wait are for a demand without a folder; a run brings its own")
    about, point, cores = _measured(options.folder)
    cores = cores if options.cores is None else options.cores
    if cores is None:
        raise ConfigError(f"{options.folder} does not say how many cores its machine has; give --cores N")
    return about, bool(point["simulated"]), size_point(point, cores)


def _measured(folder: Path) -> tuple[str, dict[str, Any], int | None]:
    """What is spoken of, its point, and the cores of its machine, where they were written down."""
    from perfkit.measuring.archive.format import SCAN_NAME
    from perfkit.measuring.experiment import Run, open_run
    from perfkit.measuring.scanning.grid import open_scan_results, varied_text

    if (folder / SCAN_NAME).exists():
        scan = open_scan_results(folder)
        place = _best_place(scan.points, scan.best())
        held: Run = scan.run(place)
        point = dict(scan.points[place])
        about = f"best point of {len(scan.points)}: {varied_text(point['varied'])}"
    else:
        held = open_run(folder)
        point, step = _best_step(dict(held.point))
        about = f"run {folder.name}{step}"
    if not point or point["grade"] == "void":
        raise ConfigError(f"{folder} holds no figures that count ({point.get('grade', 'not analysed')}); measure again")
    label = " · simulated" if point["simulated"] else ""
    return f"{about}{label}", point, held.stored.manifest.environment.get("usable_cores")


def _best_step(point: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Of a load that changes its level the steady step with the most throughput, and its name; else the point."""
    from perfkit.measuring.analysis.usable import is_usable, rate_of

    steps = [step for step in point.get("steps", ()) if "throughput_rps" in step and is_usable(step)]
    if not steps:
        return point, ""
    best = max(steps, key=rate_of)
    return {**best, "settings": point["settings"], "simulated": point["simulated"]}, f", {best['name']}"


def _best_place(points: Any, best: Any) -> int:
    if best is None:
        raise ConfigError("the scan has no best point, since none is in a steady state; measure again or longer")
    return next(place for place, point in enumerate(points) if dict(point["varied"]) == dict(best["varied"]))
