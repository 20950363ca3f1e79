"""How do the promises stand? `python tests/promises/table.py FOLDER` prints a folder's figures as a Markdown table.

The folder is what PERFKIT_FIGURES named when the tests ran.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def table(folder: Path) -> str:
    """One line a test: what was promised, and what was measured."""
    rows = [json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("r*.json"))]
    lines = ["| Promise | Target | Measured |", "|---|---|---|"]
    lines += [f"| {row['promise']} | {row['target']} | {measured(row['figures'])} |" for row in rows]
    return "\n".join(lines)


def measured(figures: dict[str, object]) -> str:
    """The figures in one cell."""
    return ", ".join(f"{name} {show(value)}" for name, value in figures.items())


def show(value: object) -> str:
    """One figure; lists are ranges, tables are pairs."""
    if isinstance(value, dict):
        return " ".join(f"{name}: {number}" for name, number in value.items())
    if isinstance(value, list):
        return "–".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


if __name__ == "__main__":
    print(table(Path(sys.argv[1])))
