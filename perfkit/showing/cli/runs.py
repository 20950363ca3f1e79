"""`perfkit runs`: what lies in the archive?"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perfkit.measuring.archive.runs import RunEntry


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of the command."""
    parser.add_argument(
        "folder", type=Path, nargs="?", default=Path("perfkit-runs"), help="archive folder (default perfkit-runs)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document on stdout and nothing else")


def run(options: argparse.Namespace) -> int:
    """List runs and scans, newest first; broken folders are named with the reason."""
    from perfkit.showing.cli import console
    from perfkit.showing.cli.tables import runs_table

    entries = _entries(options.folder)
    if options.json:
        rows = [dataclasses.asdict(entry) | {"path": str(entry.path)} for entry in entries]
        simulated = any(entry.simulated for entry in entries)
        console.print_json({"schema": 1, "simulated": simulated, "runs": rows})
    elif entries:
        console.results().print(runs_table(entries))
    else:
        console.remark(f"no runs in {options.folder}; perfkit scan or perfkit demo makes some")
    return 0


def _entries(folder: Path) -> list[RunEntry]:
    """What a folder holds, and what the demos in it hold."""
    from perfkit.measuring.archive.runs import list_runs
    from perfkit.measuring.scanning.tour import INDEX_NAME

    demos = sorted((index.parent for index in folder.glob(f"*/{INDEX_NAME}")), reverse=True)
    return [entry for place in (folder, *demos) for entry in list_runs(place)]
