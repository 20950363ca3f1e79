"""`perfkit demo`: what does perfkit show in three minutes?

The curve, the ledger, the flame graph and a recommendation, from nothing.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfkit.showing.cli.main import exit_code

if TYPE_CHECKING:
    from perfkit.measuring.scanning.tour import Tour
    from perfkit.showing.report.data import ReportData


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of the command."""
    parser.add_argument(
        "--model", default="minilm", help="minilm, resnet, mlp, noop, simulated:PRESET or module:Class (default minilm)"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("perfkit-demo"),
        metavar="DIR",
        help="folder for the report, in which the runs get a folder of their own (default perfkit-demo)",
    )
    parser.add_argument(
        "--smoke",
        action="store_true",
        help="half a second per point: shows that everything works, measures nothing worth quoting",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document on stdout and nothing else")


def run(options: argparse.Namespace) -> int:
    """Run the tour, print the tables, write the report."""
    from perfkit.clock import calendar_now
    from perfkit.measuring.archive.manifest import new_id
    from perfkit.measuring.scanning.tour import FULL, SMOKE, run_tour
    from perfkit.showing.cli import console
    from perfkit.showing.report.collect import report_of_tour

    folder = options.out / f"demo-{new_id(calendar_now())}"
    with console.tour_progress(options.json) as watch:
        tour = run_tour(options.model, folder, SMOKE if options.smoke else FULL, watch)
    report = report_of_tour(tour)
    page = _write(report, folder, options.out)
    if options.json:
        texts = {"report": str(page), "recommendation": report.recommendation, "verdict": report.comparison_verdict}
        console.print_json(tour.scan.to_json() | texts | {"folder": str(folder)})
    else:
        _print(tour, report)
        console.say(f"report: {page}\nruns: {folder}")
    return exit_code(tour.scan.points)


def _write(report: ReportData, folder: Path, parent: Path) -> Path:
    """Each demo keeps its page; the latest is also where the next reader looks first."""
    from perfkit.showing.report.page import write_report

    write_report(folder / "report.html", report)
    return Path(shutil.copyfile(folder / "report.html", parent / "report.html"))


def _print(tour: Tour, report: ReportData) -> None:
    from perfkit.showing.cli import console
    from perfkit.showing.plots.points import loop_text

    about = f"{loop_text(tour.scan.points)}{' · simulated' if report.simulated else ''}"
    for series in tour.series:
        label = f" · {series.label}" if series.label else ""
        _print_points(tour.points(series), f"{series.varied}{label} · {about}")
    if tour.final is not None:
        _print_points(tour.final.points, f"recommended against default · {about}")
    console.say(report.recommendation, style="bold")
    if report.comparison_verdict:
        console.say(report.comparison_verdict)
    if tour.stacks_missing:
        console.say(f"flame graph: not recorded: {tour.stacks_missing}")


def _print_points(points: Sequence[Mapping[str, Any]], title: str) -> None:
    from perfkit.showing.cli import console
    from perfkit.showing.cli.tables import points_table, remarks

    console.results().print(points_table(points, title))
    for line in remarks(points):
        console.say(line, style="dim")
    console.say("")
