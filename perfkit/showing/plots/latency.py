"""How are the latencies of single requests distributed, out to the tail?

For use in a notebook, on a run's `requests`; no command and no page of perfkit's own draws it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from perfkit.showing.plots.look import COLORS, dressed, latency_unit, lines, plain
from perfkit.showing.plots.points import count_text
from perfkit.units import format_duration, format_percent

if TYPE_CHECKING:
    import pandas

_STEPS = 60  # points between one "nine" and the next: a curve without visible corners
_TICKS = (0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999)
_HEIGHT = 440


def latency_table(latencies_s: Mapping[str, Sequence[float]]) -> pandas.DataFrame:
    """Order statistics of each series on a scale that stretches the tail: `quantile_ratio`, `latency_s`, `count`.

    The k-th smallest of n stands at (k - 0.5)/n (Hazen); the sample says nothing beyond its largest.
    """
    import pandas

    rows = []
    for label, values in latencies_s.items():
        ordered = np.sort(np.asarray(values, dtype=float))
        count = len(ordered)
        for rank in _ranks(count):
            rows.append(
                {
                    "series": label,
                    "quantile_ratio": (rank - 0.5) / count,
                    "latency_s": float(ordered[rank - 1]),
                    "count": count,
                }
            )
    return pandas.DataFrame(rows, columns=["series", "quantile_ratio", "latency_s", "count"])


def _ranks(count: int) -> list[int]:
    """Ranks from 1 to `count`, evenly spaced in nines, each once."""
    if count == 0:
        return []
    nines = math.log10(count)
    steps = range(math.ceil(nines * _STEPS) + 1)
    return sorted({1, count, *(max(1, math.ceil(count * (1 - 10 ** (-step / _STEPS)))) for step in steps)})


def plot_latency(
    table: pandas.DataFrame, *, title: str = "Latency by percentile", simulated: bool = False
) -> go.Figure:
    """Latency over percentile; each nine takes the same width, so that the tail can be read."""
    figure = go.Figure()
    factor, unit = latency_unit(table["latency_s"])
    for at, label in enumerate(table["series"].unique()):
        rows = table[table["series"] == label]
        count = f"{count_text(rows['count'].iloc[0])} requests"
        figure.add_scatter(
            x=[_nines(share) for share in rows["quantile_ratio"]],
            y=(rows["latency_s"] * factor).tolist(),
            mode="lines",
            name=plain(f"{label} ({count})" if label else count),
            line={"color": COLORS[at % len(COLORS)], "width": 2},
            hovertext=[
                lines(
                    f"{label}: {format_percent(row['quantile_ratio'])} within {format_duration(row['latency_s'])}",
                    count,
                )
                for row in rows.to_dict("records")
            ],
            hoverinfo="text",
        )
    shown = [share for share in _TICKS if not len(table) or share <= table["quantile_ratio"].max()]
    texts = [f"{share * 100:g} %" for share in shown]
    figure.update_xaxes(
        title_text="share of requests within", tickvals=[_nines(share) for share in shown], ticktext=texts
    )
    figure.update_yaxes(title_text=f"latency ({unit})", rangemode="tozero")
    return dressed(figure, title, simulated, _HEIGHT)


def _nines(share: float) -> float:
    """0 -> 0, 0.9 -> 1, 0.99 -> 2."""
    return -math.log10(1 - share) if share < 1 else math.inf
