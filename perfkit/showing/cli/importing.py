"""`perfkit import`: what do files of other tools say?"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfkit.clock import calendar_now
from perfkit.errors import ConfigError

if TYPE_CHECKING:
    from perfkit.measuring.importers.foreignrun import ForeignRun
    from perfkit.measuring.importers.formats import Refused
    from perfkit.measuring.importers.imported import Imported
    from perfkit.showing.report.foreign import FileSection


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of the command."""
    parser.add_argument(
        "files", type=Path, nargs="+", metavar="FILE", help="results, profiles, traces, or folders of them"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="keep each file as a run folder in this archive folder")
    parser.add_argument(
        "--report", type=Path, metavar="PAGE", help="write one HTML page with tables, plots and findings"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document on stdout and nothing else")


def run(options: argparse.Namespace) -> int:
    """Reads every file; those that cannot be read are named with the reason. Raises ConfigError when none can."""
    from perfkit.measuring.importers.formats import Refused, read_files
    from perfkit.showing.cli import console

    taker = _Taker(options)
    for result in read_files(options.files):
        if isinstance(result, Refused):
            taker.refused.append(result)
            console.remark(result.reason)
        else:
            taker.take(result)
    if not taker.read:
        refused = len(taker.refused)
        raise ConfigError(f"none of {refused} files could be read" if refused else "there are no files in it")
    if options.report:
        taker.write_report(options.report)
    if options.json:
        console.print_json({"schema": 1, "simulated": False, **taker.document()})
    return 0


class _Taker:
    """Keeps, shows and remembers one file after another; single requests do not stay in memory."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self.read: list[dict[str, Any]] = []
        self.refused: list[Refused] = []
        self._sections: list[FileSection] = []

    def take(self, imported: Imported) -> None:
        """One file that could be read."""
        from perfkit.measuring.importers.foreignrun import judged, save_import

        run = judged(imported)
        folder = save_import(self._options.out, run).path if self._options.out else None
        if self._options.json:
            findings = [dataclasses.asdict(finding) for finding in run.findings]
            self.read.append({**imported.to_json(), "findings": findings, "run": str(folder) if folder else None})
        else:
            self.read.append({})
            _say(run, folder)
        if self._options.report:
            from perfkit.showing.report.foreign import section_of

            self._sections.append(section_of(run, len(self._sections)))

    def write_report(self, page: Path) -> None:
        """All files on one page."""
        from perfkit.showing.cli import console
        from perfkit.showing.report.foreign import render_imports
        from perfkit.showing.report.page import write_page

        write_page(page, render_imports(self._sections, calendar_now(), [one.reason for one in self.refused]))
        if not self._options.json:
            console.say(f"\nreport: {page}")

    def document(self) -> dict[str, Any]:
        """What was read, and what was not."""
        return {"files": self.read, "refused": list(map(dataclasses.asdict, self.refused))}


def _say(run: ForeignRun, folder: Path | None) -> None:
    from perfkit.showing.cli import console
    from perfkit.showing.cli.imported import print_imported

    print_imported(run.imported)
    if run.findings:
        kinds = ", ".join(dict.fromkeys(finding.check for finding in run.findings))
        console.say(f"\nwhat cannot be right: {kinds}; perfkit audit {run.imported.path} tells why")
    if folder:
        console.say(f"kept: {folder}", style="dim")
