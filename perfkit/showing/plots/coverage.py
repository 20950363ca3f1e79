"""How often do the intervals of short and of long runs hold the truth?

One panel a length of run and way of judging, one interval a run; those that miss the truth stand out in
colour and in form. An interval without an upper end is an arrow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from perfkit.showing.plots.look import BLUE, GREY, VERMILION, dressed, latency_unit, plain, scaled
from perfkit.units import format_percent

if TYPE_CHECKING:
    import pandas

_HEIGHT = 560
_TOP_OF_TRUTH = 2.2  # how far the axis goes, in truths: an interval may be much longer, and is cut then


def plot_coverage(table: pandas.DataFrame, *, title: str = "Intervals of P99 and the truth") -> go.Figure:
    """Rows of `trial_table` as intervals over the number of the run, methods below each other, lengths side by side."""
    methods, lengths = list(table["method"].unique()), sorted(table["seconds"].unique())
    factor, unit = latency_unit(table["truth_s"])
    parts = {
        (method, seconds): table[(table["method"] == method) & (table["seconds"] == seconds)]
        for method in methods
        for seconds in lengths
    }
    figure = make_subplots(
        rows=len(methods),
        cols=len(lengths),
        shared_yaxes=True,
        vertical_spacing=0.2,
        horizontal_spacing=0.03,
        subplot_titles=[_heading(part) for part in parts.values()],
    )
    for at, part in enumerate(parts.values()):
        _add_panel(figure, part, factor, (at // len(lengths) + 1, at % len(lengths) + 1))
    _add_keys(figure)
    top = float(table["truth_s"].max()) * factor * _TOP_OF_TRUTH
    figure.update_yaxes(range=[0, top])
    figure.update_yaxes(title_text=f"P99 ({unit})", col=1)
    figure.update_annotations(font_size=12)
    figure.update_xaxes(title_text="run", row=len(methods))
    return dressed(figure, title, True, _HEIGHT).update_layout(margin={"t": 110})


def _heading(part: pandas.DataFrame) -> str:
    length = f"{part['seconds'].iloc[0]:,g} s, {part['times'].iloc[0]:,.0f} relaxation times"
    held = f"{plain(part['method'].iloc[0])}: {format_percent(float(part['holds'].mean()))} hold the truth"
    return f"{length}<br>{held}"


def _add_panel(figure: go.Figure, part: pandas.DataFrame, factor: float, place: tuple[int, int]) -> None:
    row, col = place
    for holds, color, symbol in ((True, BLUE, "circle"), (False, VERMILION, "x")):
        runs = part[part["holds"] == holds]
        high_s = runs["high_s"].where(runs["high_s"].notna(), part["truth_s"].max() * _TOP_OF_TRUTH)
        middle_s = runs["value_s"].where(runs["value_s"].notna(), runs["low_s"])
        figure.add_scatter(
            x=runs["run"].tolist(),
            y=scaled(middle_s, factor),
            mode="markers",
            marker={"color": color, "size": 4 if holds else 6, "symbol": symbol},
            error_y={
                "type": "data",
                "array": scaled(high_s - middle_s, factor),
                "arrayminus": scaled(middle_s - runs["low_s"].fillna(0.0), factor),
                "color": color,
                "thickness": 1.2,
                "width": 0,
            },
            showlegend=False,
            hoverinfo="skip",
            row=row,
            col=col,
        )
    figure.add_hline(y=float(part["truth_s"].iloc[0]) * factor, line={"color": GREY, "width": 1.5}, row=row, col=col)


def _add_keys(figure: go.Figure) -> None:
    line = {"color": GREY, "width": 1.5}
    figure.add_scatter(x=[None], y=[None], mode="lines", line=line, name="the true P99")
    for name, color, symbol in (("holds the truth", BLUE, "circle"), ("misses it", VERMILION, "x")):
        marker = {"color": color, "symbol": symbol}
        figure.add_scatter(x=[None], y=[None], mode="markers", marker=marker, name=name)
