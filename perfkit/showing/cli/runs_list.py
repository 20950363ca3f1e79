"""`perfkit runs list`: what lies in the archive?"""

from __future__ import annotations

import argparse
import dataclasses
from typing import TYPE_CHECKING, Any

from perfkit.showing.cli import runs

if TYPE_CHECKING:
    from perfkit.measuring.archive.entries import RunEntry


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of the action."""
    runs.add_archive(parser)
    parser.add_argument("--model", help="only runs of this model; simulated takes simulated:PRESET too")
    parser.add_argument("--since", metavar="WHEN", help="only runs since a date (2026-11-01), a moment, or an age (7d)")
    runs.add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Runs and scans, newest first; broken folders are named with the reason."""
    from datetime import datetime

    from perfkit.clock import calendar_now
    from perfkit.measuring.archive.ages import read_moment
    from perfkit.measuring.archive.runs import list_runs, select_runs
    from perfkit.showing.cli import console
    from perfkit.showing.cli.tables import runs_table

    since = read_moment(options.since, datetime.fromisoformat(calendar_now())) if options.since else None
    there = list_runs(options.folder, remember=True)
    entries = select_runs(there, options.model, since)
    if options.json:
        simulated = any(entry.simulated for entry in entries)
        console.print_json({"schema": 1, "simulated": simulated, "runs": list(map(entry_document, entries))})
    elif entries:
        console.results().print(runs_table(entries))
    elif there:
        console.remark(f"none of the {len(there)} runs in {options.folder} is of that model and time")
    else:
        console.remark(f"no runs in {options.folder}; perfkit scan or perfkit demo makes some")
    return 0


def entry_document(entry: RunEntry) -> dict[str, Any]:
    """A line of the list as `--json` prints it."""
    return dataclasses.asdict(entry) | {"path": str(entry.path)}
