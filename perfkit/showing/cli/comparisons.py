"""How does a comparison look in a terminal? A row for each metric."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from perfkit.showing.report.compared import shifts_table

if TYPE_CHECKING:
    from perfkit.measuring.comparing.comparison import Comparison

_STYLES = {"faster": "green", "slower": "red", "no difference": "bold", "inconclusive": "yellow"}


def comparison_table(comparison: Comparison) -> Table:
    """Medians of both sides, the shift with its interval, what could have been seen, and the verdict."""
    found = shifts_table(comparison)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for heading in found.headings:
        table.add_column(heading, justify="left" if heading in found.words else "right", no_wrap=True)
    for row in found.rows:
        *cells, verdict = (cell.text for cell in row)
        table.add_row(*cells, Text(verdict, style=_STYLES.get(verdict, "dim")))
    return table
