"""`perfkit runs pin` and `unpin`: which run must stay, whatever is pruned?"""

from __future__ import annotations

import argparse

from perfkit.showing.cli import runs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of both actions."""
    runs.add_wanted(parser)
    if parser.prog.endswith(" pin"):
        parser.add_argument("--reason", default="", metavar="TEXT", help="why it must stay")


def run(options: argparse.Namespace) -> int:
    """Mark, or take the mark away, and say so."""
    from perfkit.errors import ConfigError
    from perfkit.measuring.archive.pins import pin, unpin
    from perfkit.measuring.archive.runs import find_run
    from perfkit.showing.cli import console

    entry = find_run(options.folder, options.wanted)
    if entry.state == "broken":
        raise ConfigError(f"{entry.path} is broken: {entry.reason}")
    if options.action == "pin":
        pin(entry.path, options.reason)
        console.say(f"pinned: {entry.path}")
    else:
        unpin(entry.path)
        console.say(f"not pinned: {entry.path}")
    return 0
