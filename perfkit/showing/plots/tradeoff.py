"""Which setting gives how much throughput at which P99?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import plotly.graph_objects as go

from perfkit.showing.plots.look import COLORS, GREY, dressed, latency_unit, plain, scaled
from perfkit.showing.plots.marks import JOINED_GRADES, SYMBOLS, Mark, add_keys, point_text
from perfkit.showing.plots.points import Points, setting_text
from perfkit.showing.plots.scan import scan_table
from perfkit.units import format_duration

if TYPE_CHECKING:
    import pandas

_HEIGHT = 460


def tradeoff_table(points: Points, varied: str) -> pandas.DataFrame:
    """The rows of `scan_table`; `latency_s` is P99, or its lower end where it has no value."""
    table = scan_table(points, varied).astype({"p99_s": "float64", "p99_low_s": "float64"})
    latency = table["p99_s"].fillna(table["p99_low_s"])
    return table.assign(latency_s=latency, is_lower_bound=table["p99_s"].isna() & latency.notna())


def plot_tradeoff(table: pandas.DataFrame, varied: str, *, budget_s: float | None = None, title: str = "") -> go.Figure:
    """P99 over throughput, each point labelled with its setting; `budget_s` draws the P99 budget."""
    figure = go.Figure()
    factor, unit = latency_unit([*table["latency_s"], budget_s])
    for at, label in enumerate(table["series"].unique()):
        rate, tail = _marks(f"{label}: P99" if label else "P99", COLORS[at % len(COLORS)], factor)
        _add_series(figure, table[table["series"] == label], rate, tail)
    add_keys(figure, table)
    if not (table["latency_s"].notna() & table["throughput_rps"].notna()).any():
        text = "no point has a result"
        figure.add_annotation(text=text, x=0.5, y=0.5, xref="paper", yref="paper", showarrow=False)
    if budget_s is not None:
        text = f"P99 budget {format_duration(budget_s)}"
        figure.add_hline(
            y=budget_s * factor,
            line={"dash": "dashdot", "width": 1.5, "color": GREY},
            annotation_text=text,
            annotation_position="bottom left",
        )
    figure.update_xaxes(title_text="throughput (req/s)", rangemode="tozero")
    figure.update_yaxes(title_text=f"P99 latency ({unit})", rangemode="tozero")
    title = title or f"Throughput against P99, by {varied}"
    return dressed(figure, title, bool(table["simulated"].any()), _HEIGHT)


def _marks(name: str, color: str, factor: float) -> tuple[Mark, Mark]:
    def mark(stem: str, unit: str, scale: float) -> Mark:
        return Mark(
            stem=stem, unit=unit, factor=scale, name=name, group=name, key=name, color=color, dash="solid", panel=1
        )

    return mark("throughput", "rps", 1.0), mark("p99", "s", factor)


def _add_series(figure: go.Figure, rows: pandas.DataFrame, rate: Mark, tail: Mark) -> None:
    """One series: a line through its sound points in the order of the setting, and every point with both intervals."""
    rows = rows[rows["latency_s"].notna() & rows["throughput_rps"].notna()]
    if rows.empty:
        return
    sound = rows[rows["grade"].isin(JOINED_GRADES)]
    shared = {"name": plain(tail.name), "legendgroup": tail.group}
    figure.add_scatter(
        x=rate.column(sound),
        y=scaled(sound["latency_s"], tail.factor),
        mode="lines",
        line={"color": tail.color, "width": 2},
        hoverinfo="skip",
        **shared,
    )
    records = rows.to_dict("records")
    figure.add_scatter(
        x=rate.column(rows),
        y=scaled(rows["latency_s"], tail.factor),
        mode="markers+text",
        text=[plain(setting_text(row["setting"])) for row in records],
        textposition=["top center" if at % 2 else "bottom center" for at in range(len(records))],
        marker=tail.marker(["arrow-up" if row["is_lower_bound"] else SYMBOLS[row["grade"]] for row in records]),
        error_x=rate.bars(rows),
        error_y=tail.bars(rows),
        hovertext=[point_text(row, tail) for row in records],
        hoverinfo="text",
        showlegend=False,
        **shared,
    )
