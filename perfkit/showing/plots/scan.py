"""How do throughput and latency change with a setting, and where is the knee?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from perfkit.showing.plots.fits import add_fits, fit_lines
from perfkit.showing.plots.look import (
    BLUE,
    COLORS,
    GREEN,
    GREY,
    ORANGE,
    VERMILION,
    dressed,
    latency_unit,
    log_axis,
    plain,
)
from perfkit.showing.plots.marks import Mark, add_keys, add_mark
from perfkit.showing.plots.points import (
    QUANTILES,
    Points,
    knee_text,
    knees_by_label,
    labelled,
    place_of,
    places,
    quantile_columns,
    setting_of,
    setting_text,
)
from perfkit.units import is_absent

if TYPE_CHECKING:
    import pandas

_DASHES = {"p50": "dot", "p95": "dash", "p99": "solid"}
_QUANTILE_COLORS = {"p50": GREEN, "p95": ORANGE, "p99": VERMILION}
_HEIGHT = 620
_LOG_FROM = 30.0  # ratio of largest to smallest latency from which a linear axis would flatten the small ones


def scan_table(points: Points, varied: str) -> pandas.DataFrame:
    """One row a point: setting and its place on the axis, throughput and quantiles with their ends, grade, reasons."""
    import pandas

    rows = [_row(label, point, varied) for label, point in labelled(points)]
    place = places(row["setting"] for row in rows)
    for row in rows:
        row["place"] = place[row["setting"]]
    order = {label: at for at, label in enumerate(dict.fromkeys(row["series"] for row in rows))}
    rows.sort(key=lambda row: (order[row["series"]], row["place"]))
    return pandas.DataFrame(rows)


def _row(label: str, point: Mapping[str, Any], varied: str) -> dict[str, Any]:
    throughput = point.get("throughput_rps") or {}
    row = {
        "series": label,
        "setting": setting_of(point, varied),
        "throughput_rps": throughput.get("value"),
        "throughput_low_rps": throughput.get("low"),
        "throughput_high_rps": throughput.get("high"),
    }
    for quantile in QUANTILES:
        row |= quantile_columns(point, quantile)
    return row | {
        "requests": point.get("requests"),
        "grade": point["grade"],
        "reasons": "; ".join(str(reason) for reason in point.get("reasons") or ()),
        "simulated": bool(point.get("simulated", False)),
    }


def plot_scan(
    table: pandas.DataFrame,
    varied: str,
    *,
    knee: Mapping[str, Any] | None = None,
    fits: Mapping[str, Any] | None = None,
    title: str = "Scan",
) -> go.Figure:
    """Throughput above latency over the varied setting, from `scan_table`. `knee` is one, or one a series by label.

    `fits` are those of the only series; over several, lines of fits would hide what was measured.
    """
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.08, row_heights=[0.45, 0.55])
    factor, unit = latency_unit([*table["p99_s"], *table["p99_low_s"], *table["p50_s"]])
    labels = list(table["series"].unique())
    if len(labels) == 1:
        known = dict(zip(table["setting"], table["place"], strict=True))
        add_fits(figure, fit_lines(fits, varied, list(known)), known)
    for at, label in enumerate(labels):
        for mark in _marks(label, COLORS[at % len(COLORS)] if len(labels) > 1 else "", factor):
            add_mark(figure, table[table["series"] == label], mark)
    if len(labels) > 1:
        _add_quantile_keys(figure)
    add_keys(figure, table)
    _add_knees(figure, table, knee)
    _dress_axes(figure, table, varied, (factor, unit))
    dressed(figure, title, bool(table["simulated"].any()), _HEIGHT)
    return figure.update_layout(margin={"t": 90, "b": 120})


def add_earlier(figure: go.Figure, table: pandas.DataFrame, earlier: pandas.DataFrame) -> go.Figure:
    """Behind the curves of `table`, what the same sides gave before: throughput and P50 as faint lines.

    P50 and not P99, because it is known however short a run was. Only settings that both have are comparable.
    """
    factor, _ = latency_unit([*table["p99_s"], *table["p99_low_s"], *table["p50_s"]])
    known = dict(zip(table["setting"], table["place"], strict=True))
    labels = list(table["series"].unique())
    for label in [label for label in earlier["series"].unique() if label in labels]:
        rows = earlier[(earlier["series"] == label) & earlier["setting"].isin(list(known))]
        style = {"color": COLORS[labels.index(label) % len(COLORS)], "width": 1.2, "dash": "longdashdot"}
        for panel, values in ((1, rows["throughput_rps"]), (2, rows["p50_s"] * factor)):
            figure.add_scatter(
                x=[known[setting] for setting in rows["setting"]],
                y=values.tolist(),
                mode="lines",
                opacity=0.65,
                line=style,
                name=plain(f"{label}: before"),
                legendgroup=label,
                showlegend=panel == 1,
                hoverinfo="skip",
                row=panel,
                col=1,
            )
    return figure


def _marks(label: str, color: str, factor: float) -> list[Mark]:
    """Throughput above, quantiles below. One series has a colour for each figure, several have one for each series."""
    one = not color
    before = f"{label}: " if label else ""
    top = Mark(
        stem="throughput",
        unit="rps",
        factor=1.0,
        name=f"{before}throughput",
        group="throughput" if one else label,
        key="throughput" if one else label,
        color=color or BLUE,
        dash="solid",
        panel=1,
    )
    below = [
        Mark(
            stem=quantile,
            unit="s",
            factor=factor,
            name=f"{before}{quantile.upper()}",
            group=quantile if one else label,
            key=quantile.upper() if one else "",
            color=color or _QUANTILE_COLORS[quantile],
            dash=_DASHES[quantile],
            panel=2,
        )
        for quantile in QUANTILES
    ]
    return [top, *below]


def _add_quantile_keys(figure: go.Figure) -> None:
    for quantile, dash in _DASHES.items():
        line = {"dash": dash, "color": GREY, "width": 2}
        figure.add_scatter(x=[None], y=[None], mode="lines", line=line, name=quantile.upper(), hoverinfo="skip")


def _add_knees(figure: go.Figure, table: pandas.DataFrame, knee: Mapping[str, Any] | None) -> None:
    """A band over each knee's interval, edged and named, across both panels."""
    known = dict(zip(table["setting"], table["place"], strict=True))
    if not all(isinstance(setting, int | float) for setting in known):
        return
    labels = list(table["series"].unique())
    for at, (label, one) in enumerate(knees_by_label(knee).items()):
        color = COLORS[labels.index(label) % len(COLORS)] if label in labels and len(labels) > 1 else GREY
        low, high = (place_of(one[end], known) for end in ("low", "high"))
        figure.add_vrect(x0=low, x1=high, fillcolor=color, opacity=0.15, line_width=0, layer="below", row="all", col=1)
        for edge in sorted({low, high}):
            figure.add_vline(x=edge, row="all", col=1, line={"color": color, "width": 1.2, "dash": "dashdot"})
        figure.add_annotation(
            x=low,
            y=1,
            yref="y domain",
            yanchor="bottom",
            yshift=15 * at,
            xanchor="left",
            showarrow=False,
            text=plain(f"{label} knee {knee_text(one)}".strip()),
        )


def _dress_axes(figure: go.Figure, table: pandas.DataFrame, varied: str, latency: tuple[float, str]) -> None:
    texts = tick_texts(table)
    margin = 0.08 * (max(texts) - min(texts)) or 0.5
    ends = [min(texts) - margin, max(texts) + margin]
    figure.update_xaxes(range=ends, tickvals=list(texts), ticktext=list(texts.values()))
    figure.update_xaxes(title_text=plain(varied), row=2, col=1)
    figure.update_yaxes(title_text="throughput (req/s)", rangemode="tozero", row=1, col=1)
    smallest, largest = table["p50_s"].min(), table[["p99_s", "p99_low_s", "p95_s"]].max().max()
    is_wide = smallest > 0 and largest / smallest > _LOG_FROM
    factor, unit = latency
    scale = log_axis([smallest * factor, largest * factor]) if is_wide else {"rangemode": "tozero"}
    figure.update_yaxes(title_text=f"latency ({unit})", row=2, col=1, **scale)


def tick_texts(table: pandas.DataFrame) -> dict[float, str]:
    """Place -> the setting's text; under one without any figure stands the grade, so that the gap explains itself."""
    texts: dict[float, str] = {}
    for row in table.to_dict("records"):
        series = f" ({row['series']})" if row["series"] else ""
        gap = f"<br>{plain(row['grade'] + series)}" if is_absent(row["throughput_rps"]) else ""
        texts[row["place"]] = texts.get(row["place"], plain(setting_text(row["setting"]))) + gap
    return dict(sorted(texts.items()))
