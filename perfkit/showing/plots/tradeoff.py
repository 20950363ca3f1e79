"""Which setting gives how much throughput at which P99?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import plotly.graph_objects as go

from perfkit.showing.plots.look import COLORS, dressed, latency_unit, plain
from perfkit.showing.plots.marks import JOINED_GRADES, SYMBOLS, Mark, add_grade_keys, point_text
from perfkit.showing.plots.points import Points, setting_text
from perfkit.showing.plots.scan import scan_table
from perfkit.units import format_duration

if TYPE_CHECKING:
    import pandas

_HEIGHT = 460


def tradeoff_table(points: Points, varied: str) -> pandas.DataFrame:
    """The rows of `scan_table` with a throughput; `latency_s` is P99, or its lower end where it has no value."""
    table = scan_table(points, varied)
    table = table[table["throughput_rps"].notna()].astype({"p99_s": "float64", "p99_low_s": "float64"})
    latency = table["p99_s"].fillna(table["p99_low_s"])
    return table.assign(latency_s=latency, is_lower_bound=table["p99_s"].isna() & latency.notna()).reset_index(
        drop=True
    )


def plot_tradeoff(table: pandas.DataFrame, varied: str, *, budget_s: float | None = None, title: str = "") -> go.Figure:
    """P99 over throughput, each point labelled with its setting; `budget_s` draws the P99 budget."""
    figure = go.Figure()
    factor, unit = latency_unit([*table["latency_s"], budget_s])
    for at, label in enumerate(table["series"].unique()):
        rows = table[table["series"] == label]
        _add_series(
            figure,
            rows,
            Mark(
                stem="p99",
                unit="s",
                factor=factor,
                name=f"{label}: P99" if label else "P99",
                color=COLORS[at % len(COLORS)],
                dash="solid",
                panel=1,
            ),
        )
    add_grade_keys(figure, set(table["grade"]))
    if budget_s is not None:
        text = f"P99 budget {format_duration(budget_s)}"
        figure.add_hline(y=budget_s * factor, line={"dash": "dashdot", "width": 1.5}, annotation_text=text)
    figure.update_xaxes(title_text="throughput (req/s)", rangemode="tozero")
    figure.update_yaxes(title_text=f"P99 latency ({unit})", rangemode="tozero")
    title = title or f"Throughput against P99, by {varied}"
    return dressed(figure, title, bool(table["simulated"].any()), _HEIGHT)


def _add_series(figure: go.Figure, rows: pandas.DataFrame, mark: Mark) -> None:
    sound = rows[rows["grade"].isin(JOINED_GRADES) & rows["latency_s"].notna()]
    line = {"color": mark.color, "width": 2}
    shared = {"name": plain(mark.name), "legendgroup": mark.name}
    figure.add_scatter(
        x=sound["throughput_rps"].tolist(),
        y=(sound["latency_s"] * mark.factor).tolist(),
        mode="lines",
        line=line,
        hoverinfo="skip",
        **shared,
    )
    shown = rows[rows["latency_s"].notna()]
    records = shown.to_dict("records")
    figure.add_scatter(
        x=shown["throughput_rps"].tolist(),
        y=(shown["latency_s"] * mark.factor).tolist(),
        mode="markers+text",
        text=[plain(setting_text(row["setting"])) for row in records],
        textposition="top left",
        marker={
            "color": mark.color,
            "size": 10,
            "symbol": ["arrow-up" if row["is_lower_bound"] else SYMBOLS[row["grade"]] for row in records],
            "line": {"width": 2},
        },
        error_x=Mark(stem="throughput", unit="rps", factor=1.0, name="", color=mark.color, dash="solid", panel=1).bars(
            shown
        ),
        error_y=mark.bars(shown),
        hovertext=[point_text(row, mark) for row in records],
        hoverinfo="text",
        showlegend=False,
        **shared,
    )
