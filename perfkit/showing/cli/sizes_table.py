"""How are sizing formulas printed beside what was measured? One row a formula."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from perfkit.measuring.analysis.sizing import Sizing
from perfkit.showing.report.rows import fact_text
from perfkit.units import ABSENT, format_number

NAMES = ("sizes", "formula", "fed with", "gives", "measured", "which is")


def sizes_table(found: Sequence[Sizing], title: str) -> Group:
    """The formula, its inputs, its answer, and the figure of the run that it stands beside."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for name in NAMES:
        table.add_column(name, justify="right" if name in ("gives", "measured") else "left", overflow="fold")
    for one in found:
        figures = (_inputs(one.inputs), _figure(one.value), _figure(one.measured))
        table.add_row(*map(Text, (one.formula.name, one.formula.text, *figures, one.measured_as or ABSENT)))
    return Group(Text(title, style="bold"), table)


def _figure(value: float | None) -> str:
    """Threads and places are whole; what is not keeps three digits."""
    return f"{value:,.0f}" if value is not None and value.is_integer() else format_number(value)


def _inputs(inputs: Mapping[str, float]) -> str:
    """`rate 300 req/s, time 150 ms`."""
    return ", ".join(f"{name.rpartition('_')[0] or name} {fact_text(name, value)}" for name, value in inputs.items())
