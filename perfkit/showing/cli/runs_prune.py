"""`perfkit runs prune`: which old runs may go?"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from perfkit.showing.cli import runs
from perfkit.showing.cli.runs_list import entry_document

if TYPE_CHECKING:
    from perfkit.measuring.archive.pruning import Verdict


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of the action."""
    runs.add_archive(parser)
    parser.add_argument("--keep", type=int, metavar="N", help="the newest N stay")
    parser.add_argument("--older-than", metavar="AGE", help="only what is older goes: 12h, 30d, 8w")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--dry-run", action="store_true", help="say what would go and remove nothing (the default)")
    how.add_argument("--yes", action="store_true", help="remove it")
    runs.add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Say what goes and what stays, and why; with --yes remove it. Pinned, broken and unfinished ones stay."""
    from datetime import datetime

    from perfkit.clock import calendar_now
    from perfkit.errors import ConfigError
    from perfkit.measuring.archive import ages
    from perfkit.measuring.archive.entries import kind_of
    from perfkit.measuring.archive.pruning import judge_runs, remove_run
    from perfkit.measuring.archive.runs import list_runs
    from perfkit.showing.cli import console

    if kind_of(options.folder):
        raise ConfigError(f"{options.folder} is a result itself; give the folder that it lies in")
    before = None
    if options.older_than is not None:
        before = ages.before(datetime.fromisoformat(calendar_now()), ages.read_age(options.older_than))
    verdicts = judge_runs(list_runs(options.folder, remember=True), options.keep, before)
    going = [verdict for verdict in verdicts if verdict.goes]
    for verdict in going if options.yes else ():
        remove_run(verdict.entry.path)
    if options.yes and going:
        list_runs(options.folder, remember=True)  # so that the index forgets them
    if options.json:
        rows = [entry_document(one.entry) | {"goes": one.goes, "why": one.why} for one in verdicts]
        simulated = any(one.entry.simulated for one in verdicts)
        console.print_json({"schema": 1, "simulated": simulated, "removed": options.yes, "runs": rows})
    else:
        _tell(verdicts, options.yes)
    return 0


def _tell(verdicts: Sequence[Verdict], removed: bool) -> None:
    from perfkit.showing.cli import console
    from perfkit.units import format_bytes

    going = [verdict for verdict in verdicts if verdict.goes]
    word = "removed" if removed else "would go"
    for one in going:
        console.say(f"{word}: {one.entry.path} ({one.entry.created}, {format_bytes(one.entry.bytes)})")
    for one in verdicts:
        if not one.goes:
            console.remark(f"stays: {one.entry.path} ({one.why})")
    size = format_bytes(sum(one.entry.bytes for one in going))
    console.say(f"{word}: {len(going)} of {len(verdicts)}, {size}" + ("" if removed or not going else "; add --yes"))
