"""How long does a queue that starts empty take to reach its steady latency?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from perfkit.showing.plots.look import BLUE, GREY, dressed, latency_unit, log_axis, plain, scaled

if TYPE_CHECKING:
    from perfkit.measuring.analysis.blocks import Floats

_HEIGHT = 400
_POINTS = 60


def plot_filling(
    latency_s: Floats, rate_rps: float, steady_s: float, *, title: str = "A queue that starts empty"
) -> go.Figure:
    """Mean latency over many runs (one row of `latency_s` each), over the time since the start."""
    count = latency_s.shape[1]
    edges = np.unique(np.geomspace(1, count, _POINTS).astype(int)) - 1
    means = np.add.reduceat(latency_s.mean(axis=0), edges) / np.diff([*edges, count])
    factor, unit = latency_unit([steady_s, float(means.max())])
    figure = go.Figure()
    figure.add_scatter(
        x=((edges + 1) / rate_rps).tolist(),
        y=scaled(means.tolist(), factor),
        mode="lines",
        line={"color": BLUE, "width": 2.2},
        name=plain(f"mean of {len(latency_s):,} runs"),
    )
    figure.add_hline(
        y=steady_s * factor,
        line={"color": GREY, "dash": "dash", "width": 1.5},
        annotation_text="steady mean",
        annotation_position="top left",
    )
    figure.update_xaxes(title_text="time since the first request (s)", **log_axis([1 / rate_rps, count / rate_rps]))
    figure.update_yaxes(title_text=f"mean latency ({unit})", rangemode="tozero")
    return dressed(figure, title, True, _HEIGHT)
