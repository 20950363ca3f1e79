"""What is the service doing right now: throughput, latency, queue depth and threads since the run began?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from perfkit.clock import NS_PER_S
from perfkit.showing.plots.look import BLUE, GREEN, ORANGE, PURPLE, VERMILION, dressed, latency_unit, scaled

if TYPE_CHECKING:
    import pandas

_COLUMNS = ("throughput_rps", "p50_s", "p99_s", "queued", "threads")
_HEIGHT = 520
_COUNTS = 3  # the panel of what changes in steps


def live_table(readings: Iterable[Mapping[str, Any]]) -> pandas.DataFrame:
    """One row a reading: `elapsed_s` since the first, `throughput_rps`, `p50_s`, `p99_s`, `queued`,
    `threads`; absent is a gap.

    A reading has `time_ns` and any of the other names.
    """
    import pandas

    rows = sorted(readings, key=lambda reading: reading["time_ns"])
    began_ns = rows[0]["time_ns"] if rows else 0
    elapsed = [
        {"elapsed_s": (row["time_ns"] - began_ns) / NS_PER_S} | {name: row.get(name) for name in _COLUMNS}
        for row in rows
    ]
    return pandas.DataFrame(elapsed, columns=["elapsed_s", *_COLUMNS]).astype("float64")


def plot_live(table: pandas.DataFrame, *, title: str = "Live", simulated: bool = False) -> go.Figure:
    """Throughput, P50 and P99, queue depth and model threads over time, from `live_table`. The quantiles are
    those of each reading's own few requests: a trend to watch, not a result."""
    figure = make_subplots(rows=3, cols=1, shared_xaxes=True, vertical_spacing=0.07, row_heights=[0.35, 0.4, 0.25])
    factor, unit = latency_unit([*table["p99_s"], *table["p50_s"]])
    elapsed = table["elapsed_s"].tolist()
    traces = (
        ("throughput", "throughput_rps", 1.0, BLUE, 1),
        ("P50 of the reading", "p50_s", factor, GREEN, 2),
        ("P99 of the reading", "p99_s", factor, VERMILION, 2),
        ("queued requests", "queued", 1.0, ORANGE, 3),
        ("model threads", "threads", 1.0, PURPLE, 3),
    )
    for name, column, scale, color, panel in traces:
        line = {"color": color, "width": 2, "shape": "hv" if panel == _COUNTS else "linear"}
        figure.add_scatter(
            x=elapsed,
            y=scaled(table[column], scale),
            mode="lines+markers",
            marker={"size": 4},
            name=name,
            line=line,
            row=panel,
            col=1,
        )
    figure.update_yaxes(rangemode="tozero")
    for panel, text in enumerate(("req/s", f"latency ({unit})", "count"), 1):
        figure.update_yaxes(title_text=text, row=panel, col=1)
    figure.update_xaxes(title_text="time since the start (s)", row=3, col=1)
    return dressed(figure, title, simulated, _HEIGHT)
