"""`perfkit audit`: what in somebody's results cannot be right?"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from perfkit.units import format_number

if TYPE_CHECKING:
    from perfkit.measuring.importers.finding import Finding
    from perfkit.measuring.importers.imported import Imported

_FOUND = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of the command."""
    parser.add_argument("file", type=Path, help="results of a load generator, or a table as an article prints it")
    parser.add_argument("--json", action="store_true", help="print one JSON document on stdout and nothing else")


def run(options: argparse.Namespace) -> int:
    """Every contradiction with its figures, rule and source; exit code 1 when there is one."""
    from perfkit.measuring.importers.audit import audit, audit_document
    from perfkit.measuring.importers.formats import read_file
    from perfkit.showing.cli import console

    imported = read_file(options.file)
    findings = audit(imported)
    if options.json:
        console.print_json(audit_document(imported, findings))
    else:
        _say(imported, findings)
    return _FOUND if findings else 0


def _say(imported: Imported, findings: list[Finding]) -> None:
    from perfkit.showing.cli import console
    from perfkit.showing.cli.imported import facts, levels_table

    for fact in facts(imported):
        console.say(fact, style="dim")
    if imported.levels:
        console.results().print(levels_table(imported))
    for finding in findings:
        where = "" if finding.row is None else f"row {finding.row}, "
        console.say(f"\n{where}{finding.check}: {finding.claim}", style="bold")
        figures = ", ".join(f"{name} {format_number(value)}" for name, value in finding.figures.items())
        console.say(f"  figures: {figures}\n  rule: {finding.rule} ({finding.source})")
    if not findings:
        console.say("\nnothing contradicts itself in this file (which does not make it true)")
