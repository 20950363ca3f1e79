"""How did latency, good replies and rejections develop while a load went on? Several runs, side by side in time.

For what is not steady and so has no single P99: a queue that grows, a flood that begins, a service that recovers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from perfkit.clock import NS_PER_S
from perfkit.showing.plots.look import COLORS, GREY, dressed, latency_unit, log_axis, plain, scaled

if TYPE_CHECKING:
    import pandas

_SLICES = 30  # of the longest run: enough to see a development, few enough that a slice holds several requests
_LEAST_SLICE_S = 0.05
_HEIGHT = 560
_OK = "ok"
_LOG_FROM = 30.0


def timeline_table(requests: Mapping[str, pandas.DataFrame]) -> pandas.DataFrame:
    """One row a series and time slice: `elapsed_s` (its middle), `good_rps`, `other_rps`, `p50_s`, `worst_s`.

    From the requests tables of runs of one round each, by label. A request counts in the slice in which it was
    due to be sent, so that a late reply stands where the wait began. Replies that were not good have no latency here.
    """
    import pandas

    spans = {label: _span_s(table) for label, table in requests.items()}
    slice_s = max(_LEAST_SLICE_S, max(spans.values(), default=0.0) / _SLICES)
    rows = [
        row
        for label, table in requests.items()
        for row in _slices(label, table, slice_s, math.ceil(spans[label] / slice_s))
    ]
    return pandas.DataFrame(rows, columns=["series", "elapsed_s", "good_rps", "other_rps", "p50_s", "worst_s"])


def _span_s(table: pandas.DataFrame) -> float:
    due = table["scheduled_ns"].dropna()
    return float(due.max() - due.min()) / NS_PER_S if len(due) else 0.0


def _slices(label: str, table: pandas.DataFrame, slice_s: float, count: int) -> list[dict[str, Any]]:
    due = table[table["scheduled_ns"].notna()]
    elapsed_s = (due["scheduled_ns"] - due["scheduled_ns"].min()).astype("float64") / NS_PER_S
    place = (elapsed_s // slice_s).clip(upper=max(count - 1, 0)).astype(int)
    latency_s = (due["received_ns"] - due["scheduled_ns"]).astype("float64") / NS_PER_S
    is_good = due["end_state"] == _OK
    rows = []
    for at in range(count):
        here = place == at
        good = latency_s[here & is_good]
        rows.append(
            {
                "series": label,
                "elapsed_s": (at + 0.5) * slice_s,
                "good_rps": len(good) / slice_s,
                "other_rps": int((here & ~is_good).sum()) / slice_s,
                "p50_s": float(good.median()) if len(good) else None,
                "worst_s": float(good.max()) if len(good) else None,
            }
        )
    return rows


def plot_timeline(table: pandas.DataFrame, *, title: str = "Over time", simulated: bool = False) -> go.Figure:
    """Latency of good replies above (median, and the worst as a thin line), good and other replies a second below."""
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.08, row_heights=[0.55, 0.45])
    factor, unit = latency_unit([*table["p50_s"], *table["worst_s"]])
    for at, label in enumerate(table["series"].unique()):
        rows = table[table["series"] == label]
        color = COLORS[at % len(COLORS)]
        curves = (
            ("median latency", "p50_s", factor, {"width": 2.2}, 1),
            ("worst latency", "worst_s", factor, {"width": 1, "dash": "dot"}, 1),
            ("good replies", "good_rps", 1.0, {"width": 2.2}, 2),
            ("rejected or failed", "other_rps", 1.0, {"width": 1, "dash": "dot"}, 2),
        )
        for name, column, scale, line, panel in curves:
            figure.add_scatter(
                x=rows["elapsed_s"].tolist(),
                y=scaled(rows[column], scale),
                mode="lines" if "dash" in line else "lines+markers",  # a slice between two gaps is a mark alone
                marker={"size": 4},
                line={"color": color, **line},
                name=plain(label),
                legendgroup=label,
                showlegend=column == "p50_s",
                hovertemplate=f"{plain(label)}, {name}: %{{y:.4g}}<extra></extra>",
                row=panel,
                col=1,
            )
    for name, dash in (("median latency; good replies", "solid"), ("worst latency; rejected or failed", "dot")):
        line = {"dash": dash, "color": GREY, "width": 2}
        figure.add_scatter(x=[None], y=[None], mode="lines", line=line, name=name, hoverinfo="skip")
    figure.update_yaxes(title_text=f"latency ({unit})", row=1, col=1, **_scale(table, factor))
    figure.update_yaxes(title_text="replies (req/s)", rangemode="tozero", row=2, col=1)
    figure.update_xaxes(title_text="time at which the request was due (s)", row=2, col=1)
    return dressed(figure, title, simulated, _HEIGHT)


def _scale(table: pandas.DataFrame, factor: float) -> dict[str, Any]:
    """Logarithmic where a linear axis would press one of the series flat."""
    smallest, largest = table["p50_s"].min(), table["worst_s"].max()
    is_wide = smallest > 0 and largest / smallest > _LOG_FROM
    return log_axis([smallest * factor, largest * factor]) if is_wide else {"rangemode": "tozero"}
