"""`perfkit runs`: what lies in the archive, what is one of it, what may leave it, and in which form?"""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

ACTIONS = {
    "list": "list runs, scans and comparisons, newest first (what perfkit runs alone does)",
    "show": "show one of them: figures, settings, environment, code, files",
    "export": "write one of them in a form that other tools read",
    "prune": "remove old ones; without --yes it only says which",
    "pin": "mark one that prune leaves alone",
    "unpin": "take that mark away",
    "history": "tell at which run a figure moved to another level",
    "snapshot": "put model versions, settings and machines side by side in one table",
}
_MODULES = {"pin": "runs_pin", "unpin": "runs_pin"}
ARCHIVE = Path("perfkit-runs")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Actions of the command, each with its flags."""
    from perfkit.showing.cli.runs_list import run as list_all

    parser.set_defaults(folder=ARCHIVE, model=None, since=None, json=False, act=list_all)
    add_json(parser)
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    for name, text in ACTIONS.items():
        action = actions.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        module = importlib.import_module(f"perfkit.showing.cli.{_MODULES.get(name, f'runs_{name}')}")
        module.add_arguments(action)
        action.set_defaults(act=module.run)


def add_archive(parser: argparse.ArgumentParser) -> None:
    """Which archive folder."""
    parser.add_argument("folder", type=Path, nargs="?", default=ARCHIVE, help=f"archive folder (default {ARCHIVE})")


def add_wanted(parser: argparse.ArgumentParser) -> None:
    """Which run of which archive folder."""
    parser.add_argument("wanted", metavar="RUN", help="id, folder name, unique beginning of an id, or path")
    parser.add_argument(
        "--in", dest="folder", type=Path, default=ARCHIVE, metavar="DIR", help=f"archive folder (default {ARCHIVE})"
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """In which form the result is told."""
    parser.add_argument(
        "--json",
        action="store_true",
        default=argparse.SUPPRESS,  # it may stand before the action too
        help="print one JSON document on stdout and nothing else",
    )


def run(options: argparse.Namespace) -> int:
    """Whatever the action does; returns its exit code."""
    code: int = options.act(options)
    return code
