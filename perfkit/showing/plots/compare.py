"""How far is B from A, pair by pair, and does the interval of the shift leave out zero?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import plotly.graph_objects as go

from perfkit.measuring.analysis.compare.wording import figures_text, value_text
from perfkit.measuring.comparing.comparison import Comparison
from perfkit.showing.plots.look import BLUE, GREEN, GREY, VERMILION, dressed, lines, plain
from perfkit.units import format_change

if TYPE_CHECKING:
    import pandas

_ROW_HEIGHT, _FRAME_HEIGHT = 110, 180
_COLORS = {"faster": GREEN, "slower": VERMILION, "no difference": BLUE, "inconclusive": GREY}
_COLUMNS = ("metric", "kind", "label", "change_ratio", "low_ratio", "high_ratio", "threshold_ratio", "verdict", "text")


def compare_table(comparison: Comparison) -> pandas.DataFrame:
    """One row for each pair of each judged metric (*pair*), and one with its shift and interval (*shift*).

    Runs that were not interleaved have no pairs: each run of B stands against the median of A.
    """
    import pandas

    rows = []
    for one in comparison.findings.judged:
        assert one.shift is not None
        common = {"metric": one.metric.title, "threshold_ratio": one.threshold_ratio, "verdict": one.verdict}
        shift = {
            "kind": "shift",
            "label": str(one.verdict),
            "change_ratio": one.shift.value_ratio,
            "low_ratio": one.shift.low_ratio,
            "high_ratio": one.shift.high_ratio,
            "text": figures_text(one),
        }
        rows.append(common | shift)
        for place, (was, now) in enumerate(_pairs(comparison, one.metric.name, one.a)):
            values = f"{value_text(one.metric, was)} → {value_text(one.metric, now)}"
            pair = {"kind": "pair", "label": str(place + 1), "change_ratio": now / was - 1, "text": values}
            rows.append(common | pair)
    return pandas.DataFrame(rows, columns=list(_COLUMNS)).assign(simulated=comparison.simulated)


def _pairs(comparison: Comparison, name: str, median_a: float | None) -> list[tuple[float, float]]:
    theirs = [run.values[name] for run in comparison.runs_b]
    ours = (
        [run.values[name] for run in comparison.runs_a] if comparison.findings.is_paired else [median_a] * len(theirs)
    )
    return [(a, b) for a, b in zip(ours, theirs, strict=True) if a is not None and b is not None]


def plot_compare(table: pandas.DataFrame, *, title: str = "") -> go.Figure:
    """A line for each metric: every pair's change, the shift with its interval, and how far an alarm is from zero."""
    figure = go.Figure()
    metrics = list(table["metric"].unique())[::-1]
    for metric in metrics:
        rows = table[table["metric"] == metric]
        _add_pairs(figure, rows[rows["kind"] == "pair"], metric)
        _add_shift(figure, rows[rows["kind"] == "shift"].iloc[0], metric)
    figure.add_vline(x=0, line={"color": GREY, "width": 1})
    figure.update_xaxes(title_text="B against A", tickformat="+.0%")
    figure.update_yaxes(categoryorder="array", categoryarray=metrics, automargin=True)
    figure.update_layout(showlegend=False, margin={"l": 100})
    height = _FRAME_HEIGHT + _ROW_HEIGHT * len(metrics)
    return dressed(figure, title or "B against A", bool(table["simulated"].any()), height)


def _add_pairs(figure: go.Figure, rows: pandas.DataFrame, metric: str) -> None:
    figure.add_scatter(
        x=rows["change_ratio"].tolist(),
        y=[metric] * len(rows),
        mode="markers",
        marker={"color": GREY, "symbol": "line-ns-open", "size": 12, "line": {"width": 1.5}},
        hovertext=[
            lines(f"pair {row['label']}: {format_change(row['change_ratio'])}", row["text"])
            for row in rows.to_dict("records")
        ],
        hoverinfo="text",
    )


def _add_shift(figure: go.Figure, row: pandas.Series, metric: str) -> None:
    """The estimate with its interval; faint bars at the change that an alarm takes."""
    color = _COLORS[row["verdict"]]
    value = row["change_ratio"]
    error = None
    if row["low_ratio"] == row["low_ratio"]:  # NaN where so few runs give no interval
        above, below = [row["high_ratio"] - value], [value - row["low_ratio"]]
        error = {"type": "data", "array": above, "arrayminus": below, "color": color, "thickness": 3, "width": 8}
    figure.add_scatter(
        x=[value],
        y=[metric],
        mode="markers+text",
        marker={"color": color, "size": 12},
        error_x=error,
        text=[plain(f"{row['verdict']} {format_change(value)}")],
        textposition="top center",
        hovertext=[lines(row["text"])],
        hoverinfo="text",
    )
    edges = [-row["threshold_ratio"], row["threshold_ratio"]]
    figure.add_scatter(
        x=edges,
        y=[metric] * 2,
        mode="markers",
        marker={"color": GREY, "symbol": "line-ns-open", "size": 34, "line": {"width": 1}},
        opacity=0.5,
        hovertext=[plain(f"an alarm takes {format_change(edge)}") for edge in edges],
        hoverinfo="text",
    )
