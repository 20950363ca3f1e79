"""How does a comparison read in a notebook: the verdict, a row for each metric, what qualifies it, and the picture?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from perfkit.measuring.analysis.compare.wording import SHIFT_HEADINGS, shift_cells
from perfkit.measuring.comparing.comparison import Comparison

if TYPE_CHECKING:
    from perfkit.measuring.analysis.compare.verdict import MetricShift
    from perfkit.showing.notebook.chart import Chart

_HEAD = (*SHIFT_HEADINGS, "verdict")


def to_html(comparison: Comparison) -> str:
    """The comparison as a table that stays when the kernel has ended; names are escaped."""
    head = Markup("").join(Markup("<th>{}</th>").format(name) for name in _HEAD)
    rows = Markup("").join(_row(one) for one in comparison.findings.metrics)
    qualified = (*comparison.left_out, *comparison.noise, *comparison.notes)
    notes = Markup("<br>").join(escape(line) for line in qualified)
    return str(
        Markup(
            "<p><b>{}</b></p><table><thead><tr>{}</tr></thead><tbody>{}</tbody></table><p><small>{}</small></p>"
        ).format(comparison.claim, head, rows, notes)
    )


def _row(one: MetricShift) -> Markup:
    cells = (*shift_cells(one), str(one.verdict) if one.shift is not None else "not judged")
    return Markup("<tr>{}</tr>").format(Markup("").join(Markup("<td>{}</td>").format(cell) for cell in cells))


def shifts(comparison: Comparison) -> Chart:
    """Every pair's change, the shift with its interval, and how far an alarm is from zero."""
    from perfkit.showing.notebook.chart import Chart
    from perfkit.showing.plots.compare import compare_table, plot_compare

    return Chart(plot_compare(compare_table(comparison), title=comparison.title))
