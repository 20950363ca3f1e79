"""How do throughput and latency of somebody else's results go with the load?

The figures are drawn as the file gives them: a summary has no intervals.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from perfkit.measuring.importers.imported import Level
from perfkit.showing.plots.look import BLUE, GREEN, VERMILION, dressed, latency_unit, plain, scaled

if TYPE_CHECKING:
    import pandas

_HEIGHT = 620
_COLUMNS = ("load", "name", "throughput_rps", "mean_s", "p50_s", "p99_s")


def foreign_table(levels: Iterable[Level]) -> pandas.DataFrame:
    """Levels with a load (clients, else the offered rate), in its order."""
    import pandas

    rows = []
    for level in levels:
        load = level.concurrency if level.concurrency is not None else level.offered_rps
        latency = (level.mean_s, level.percentile(0.5), level.percentile(0.99))
        if load is not None:
            rows.append(dict(zip(_COLUMNS, (load, level.name, level.throughput_rps, *latency), strict=True)))
    return pandas.DataFrame(rows, columns=list(_COLUMNS)).sort_values("load", kind="stable")


def plot_foreign(table: pandas.DataFrame, *, title: str) -> go.Figure:
    """Throughput above, latencies below, both over the load."""
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.08)
    factor, unit = latency_unit([*table["p99_s"], *table["mean_s"]])
    names = [plain(name) for name in table["name"]]
    curves = (
        ("throughput", "throughput_rps", 1.0, BLUE, 1),
        ("mean", "mean_s", factor, GREEN, 2),
        ("P99", "p99_s", factor, VERMILION, 2),
    )
    for name, column, size, color, panel in curves:
        values = scaled(table[column], size)
        if any(value is not None for value in values):
            style = {"color": color, "width": 2}
            curve = go.Scatter(
                x=table["load"].tolist(), y=values, name=name, mode="lines+markers", line=style, text=names
            )
            figure.add_trace(curve, row=panel, col=1)
    figure.update_yaxes(title_text="req/s", rangemode="tozero", row=1, col=1)
    figure.update_yaxes(title_text=f"latency ({unit})", rangemode="tozero", row=2, col=1)
    figure.update_xaxes(title_text="load (clients, or requests offered a second)", row=2, col=1)
    return dressed(figure, title, simulated=False, height=_HEIGHT)
