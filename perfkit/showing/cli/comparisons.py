"""How does a comparison look in a terminal? A row for each metric, then everything that qualifies it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from perfkit.measuring.analysis.compare.wording import SHIFT_HEADINGS, shift_cells
from perfkit.units import ABSENT, format_number, format_percent

if TYPE_CHECKING:
    from perfkit.measuring.analysis.compare.verdict import MetricShift
    from perfkit.measuring.comparing.comparison import Comparison

_STYLES = {"faster": "green", "slower": "red", "no difference": "bold", "inconclusive": "yellow"}


def comparison_table(comparison: Comparison) -> Table:
    """Medians of both sides, the shift with its interval, what could have been seen, and the verdict."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    unit = "pairs" if comparison.findings.is_paired else "runs"
    for heading in (*SHIFT_HEADINGS, "p", unit):
        table.add_column(heading, justify="left" if heading == "metric" else "right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for one in comparison.findings.metrics:
        verdict = one.verdict or "not judged"
        table.add_row(*_cells(one), Text(verdict, style=_STYLES.get(verdict, "dim")))
    return table


def _cells(one: MetricShift) -> tuple[str, ...]:
    if one.shift is None:
        return (*shift_cells(one), ABSENT, "")
    count = str(one.shift.runs_a) if one.shift.is_paired else f"{one.shift.runs_a}+{one.shift.runs_b}"
    return (*shift_cells(one), format_number(one.shift.p_value), count)


def remarks(comparison: Comparison) -> list[str]:
    """How to read the table, what was left out, and what may have disturbed."""
    judged = comparison.findings.judged
    lines = []
    if judged:
        level = format_percent(judged[0].confidence_ratio)
        lines.append(
            f"Each interval is one of {level}, so that all {len(judged)} hold together with 95 %. An alarm takes an "
            'interval without zero and at least the shift under "alarm at"; "detectable" is found in 80 % of '
            "such comparisons."
        )
    ours, theirs = comparison.findings.errors_ratio
    if ours or theirs:
        lines.append(f"failed requests: {format_percent(ours)} of A's, {format_percent(theirs)} of B's")
    lines += [*comparison.left_out, *comparison.noise, *comparison.notes]
    return [*lines, *(f"saved in {folder}" for folder in comparison.folders)]
