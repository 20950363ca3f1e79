"""`perfkit audit`: what in somebody's results cannot be right?"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

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
    """Each finding with its figures; a rule is told where it is broken first."""
    from perfkit.showing.cli import console
    from perfkit.showing.cli.imported import print_imported
    from perfkit.showing.report.foreignrows import NO_FINDING, NO_RESULTS, finding_text

    print_imported(imported)
    told: set[str] = set()
    for finding in findings:
        headline, figures, rule = finding_text(finding)
        console.say(f"\n{headline}", style="bold")
        console.say(f"  figures: {figures}")
        if finding.check not in told:
            console.say(f"  rule: {rule}")
            told.add(finding.check)
    silence = NO_FINDING if imported.levels else NO_RESULTS
    console.say(f"\n{_count(findings)}" if findings else f"\n{silence}")


def _count(findings: list[Finding]) -> str:
    kinds = ", ".join(dict.fromkeys(finding.check for finding in findings))
    return f"{len(findings)} {'finding' if len(findings) == 1 else 'findings'}: {kinds}"
