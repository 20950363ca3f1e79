"""`perfkit demo`: from nothing to the curve, the ledger, the flame graph and a recommendation, in three minutes."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perfkit.measuring.scanning.tour import Tour

_VOID_EXIT = 3


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
        help="folder for report and runs (default perfkit-demo)",
    )
    parser.add_argument(
        "--smoke",
        action="store_true",
        help="half a second per point: shows that everything works, measures nothing worth quoting",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document on stdout and nothing else")


def run(options: argparse.Namespace) -> int:
    """Run the tour, print the tables, write the report."""
    from perfkit.measuring.scanning.grid import new_scan_folder
    from perfkit.measuring.scanning.tour import FULL, SMOKE, run_tour
    from perfkit.showing.cli import console
    from perfkit.showing.report.collect import report_of_tour
    from perfkit.showing.report.page import write_report

    folder = new_scan_folder(options.out).with_name(new_scan_folder(options.out).name.replace("scan-", "demo-"))
    with console.tour_progress(options.json) as watch:
        tour = run_tour(options.model, folder, SMOKE if options.smoke else FULL, watch)
    report = report_of_tour(tour)
    page = options.out / "report.html"
    write_report(page, report)
    if options.json:
        console.print_json(tour.scan.to_json() | {"report": str(page), "recommendation": report.recommendation})
    else:
        _print(tour, report.recommendation, report.comparison_verdict)
        console.results().print(f"report: {page}\nruns: {folder}")
    return 0 if any(point["grade"] != "void" for point in tour.scan.points) else _VOID_EXIT


def _print(tour: Tour, recommendation: str, verdict: str) -> None:
    from perfkit.showing.cli import console
    from perfkit.showing.cli.tables import points_table, reasons

    out = console.results()
    simulated = " · simulated" if tour.scan.stored.header.simulated else ""
    for series in tour.series:
        label = f" · {series.label}" if series.label else ""
        points = tour.points(series)
        out.print(
            points_table(
                points, f"{series.varied}{label} · closed loop, {points[0]['load']['concurrency']} in flight{simulated}"
            )
        )
        for line in reasons(points):
            out.print(f"  {line}", style="dim")
    if tour.final is not None:
        out.print(points_table(tour.final.points, f"best against default{simulated}"))
        for line in reasons(tour.final.points):
            out.print(f"  {line}", style="dim")
    out.print(recommendation, style="bold")
    if verdict:
        out.print(verdict)
    if tour.stacks_missing:
        out.print(f"flame graph: not recorded: {tour.stacks_missing}")
