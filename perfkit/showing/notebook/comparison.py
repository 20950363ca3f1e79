"""How does a comparison read in a notebook: the verdict, a row for each metric, what qualifies it, and the picture?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from perfkit.measuring.analysis.compare.wording import interval_text, value_text
from perfkit.measuring.comparing.comparison import Comparison
from perfkit.units import ABSENT, format_change, format_percent

if TYPE_CHECKING:
    from perfkit.measuring.analysis.compare.verdict import MetricShift
    from perfkit.showing.notebook.chart import Chart

_HEAD = ("metric", "A", "B", "shift", "interval", "alarm at", "detectable", "verdict")


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
    cells: tuple[str, ...] = (one.metric.title, *[ABSENT] * 6, "not judged")
    if one.shift is not None:
        cells = (
            one.metric.title,
            value_text(one.metric, one.a),
            value_text(one.metric, one.b),
            format_change(one.shift.value_ratio),
            interval_text(one.shift) or ABSENT,
            format_percent(one.threshold_ratio),
            format_percent(one.detectable_ratio),
            str(one.verdict),
        )
    return Markup("<tr>{}</tr>").format(Markup("").join(Markup("<td>{}</td>").format(cell) for cell in cells))


def shifts(comparison: Comparison) -> Chart:
    """Every pair's change, the shift with its interval, and how far an alarm is from zero."""
    from perfkit.showing.notebook.chart import Chart
    from perfkit.showing.plots.compare import compare_table, plot_compare

    return Chart(plot_compare(compare_table(comparison), title=comparison.title))
