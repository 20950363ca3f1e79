"""`perfkit import`: what do files of other tools say?"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from perfkit.errors import ConfigError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of the command."""
    parser.add_argument(
        "files", type=Path, nargs="+", metavar="FILE", help="results, profiles, traces, or folders of them"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="keep tables and plots of each file in a new folder")
    parser.add_argument("--json", action="store_true", help="print one JSON document on stdout and nothing else")


def run(options: argparse.Namespace) -> int:
    """Reads every file; those that cannot be read are named with the reason. Raises ConfigError when none can."""
    from perfkit.measuring.importers.formats import Refused, read_files
    from perfkit.measuring.importers.imported import Imported
    from perfkit.showing.cli import console
    from perfkit.showing.cli.imported import print_imported
    from perfkit.showing.cli.keeping import check_new, keep

    if options.out:
        check_new(options.out)
    read: list[Imported] = []
    refused: list[Refused] = []
    for result in read_files(options.files):
        if isinstance(result, Refused):
            refused.append(result)
            console.remark(result.reason)
        else:
            read.append(result)
            kept = keep(result, options.out / _folder_name(len(read), result.path)) if options.out else []
            if not options.json:
                print_imported(result)
            if kept and not options.json:
                console.say("kept: " + ", ".join(kept), style="dim")
            read[-1] = dataclasses.replace(result, requests=None)  # a folder of large files must not add up in memory
    if not read:
        raise ConfigError(f"none of {len(refused)} files could be read" if refused else "there are no files in it")
    if options.json:
        document = {"files": [one.to_json() for one in read], "refused": list(map(dataclasses.asdict, refused))}
        console.print_json({"schema": 1, "simulated": False, **document})
    return 0


def _folder_name(number: int, path: str) -> str:
    """Numbered, for files of the same name in different folders."""
    return f"{number:02d}-{Path(path).name}"
