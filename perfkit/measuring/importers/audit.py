"""What in a foreign result cannot be right?

Each rule is a pure function from what was imported to findings. A finding carries the figures it rests
on, the rule in words and where that comes from. Silence means that the file does not contradict itself,
not that it is true.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from perfkit.measuring.importers import audit_latency, audit_load
from perfkit.measuring.importers.finding import Finding
from perfkit.measuring.importers.imported import Imported

CHECKS = {**audit_load.SOURCES, **audit_latency.SOURCES}  # name -> the rule, and where it comes from
_LEVEL_RULES = (*audit_load.LEVEL_RULES, *audit_latency.LEVEL_RULES)
_FILE_RULES = (*audit_load.FILE_RULES, *audit_latency.FILE_RULES)


def audit(imported: Imported) -> list[Finding]:
    """Every contradiction, in the order of the rows; what concerns the whole file comes last."""
    of_levels = [finding for level in imported.levels for rule in _LEVEL_RULES for finding in rule(level)]
    of_file = [finding for rule in _FILE_RULES for finding in rule(imported)]
    return of_levels + of_file


def audit_document(imported: Imported, findings: list[Finding]) -> dict[str, Any]:
    """As `perfkit audit --json` prints it."""
    return {
        "schema": 1,
        "simulated": False,
        "format": imported.format,
        "rows": dataclasses.asdict(imported.rows),
        "timing": dataclasses.asdict(imported.timing),
        "findings": [dataclasses.asdict(finding) for finding in findings],
        "notes": list(imported.notes),
    }
