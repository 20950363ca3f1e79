"""Where does each millisecond of a request go, at each point of a scan?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go

from perfkit.records import STAGES
from perfkit.showing.plots.look import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    YELLOW,
    dressed,
    latency_unit,
    plain,
)
from perfkit.showing.plots.points import Points, labelled, places, setting_of, setting_text
from perfkit.units import format_duration, format_percent

if TYPE_CHECKING:
    import pandas

OTHER = "other (<1 %)"
_SMALL_RATIO = 0.01
_TEXT_FROM_RATIO = 0.09  # a narrower segment of the longest bar has no room for its figure
_COLORS = {
    "send": "#c7cbd1",
    "accept": "#aeb4bd",
    "parse": "#8d96a3",
    "preprocess_wait": "#f5cf85",
    "to_preprocess": "#f0b75c",
    "preprocess": ORANGE,
    "from_preprocess": "#c98a1a",
    "queue_wait": VERMILION,
    "batch_wait": YELLOW,
    "to_model": "#5bbfae",
    "model_load": "#d98c8c",
    "collate": "#8fd3bd",
    "copy_wait": "#b9dff5",
    "h2d": SKY,
    "compute_wait": "#7fb8d8",
    "compute": BLUE,
    "d2h": "#3f8fc0",
    "wake_lag": PURPLE,
    "from_model": "#9a8fc0",
    "postprocess_wait": "#a8dccb",
    "to_postprocess": "#5fb99a",
    "postprocess": GREEN,
    "serialize": "#6b7480",
    "from_postprocess": "#2f7d63",
    "reply": "#59616c",
    "receive": "#474e57",
    OTHER: GREY,
}
_WAITS = frozenset(
    {"preprocess_wait", "queue_wait", "batch_wait", "copy_wait", "compute_wait", "wake_lag", "postprocess_wait"}
)
_BAR_HEIGHT, _FRAME_HEIGHT = 34, 190


def ledger_table(points: Points, varied: str) -> pandas.DataFrame:
    """One row a point and stage that took time: `mean_s` and its share of the point's sum.

    A point without a ledger keeps one row with no stage, so that its bar is seen to be missing.
    """
    import pandas

    members = list(labelled(points))
    place = places(setting_of(point, varied) for _, point in members)
    rows = []
    for label, point in members:
        setting = setting_of(point, varied)
        bar = {"series": label, "setting": setting, "place": place[setting], "grade": point["grade"]}
        bar |= {"simulated": bool(point.get("simulated", False))}
        rows += [bar | stage for stage in _stage_rows(point.get("stages_s") or {})]
    columns = ["series", "setting", "place", "grade", "simulated", "stage", "mean_s", "share_ratio"]
    return pandas.DataFrame(rows, columns=columns).astype({"mean_s": "float64", "share_ratio": "float64"})


def _stage_rows(means: Mapping[str, float | None]) -> list[dict[str, Any]]:
    taken = {stage: mean for stage in STAGES if (mean := means.get(stage) or 0.0) > 0}
    total = sum(taken.values())
    rows = [{"stage": stage, "mean_s": mean, "share_ratio": mean / total} for stage, mean in taken.items()]
    return rows or [{"stage": "", "mean_s": None, "share_ratio": None}]


def plot_ledger(table: pandas.DataFrame, varied: str, *, title: str = "") -> go.Figure:
    """Stacked bars of the mean time in each stage, in the ledger's order; waits are hatched. Stages below 1 % of every
    bar make one segment, and its hover text lists them."""
    figure = go.Figure()
    bars = _bar_names(table, varied)
    totals_s = table.groupby(["series", "setting"], sort=False)["mean_s"].sum()
    factor, unit = latency_unit(totals_s)
    for segment, rows in _segments(table).items():
        readable = rows["mean_s"] >= _TEXT_FROM_RATIO * totals_s.max()
        figures = [format_duration(mean) if room else "" for mean, room in zip(rows["mean_s"], readable, strict=True)]
        figure.add_bar(
            y=[bars[key] for key in zip(rows["series"], rows["setting"], strict=True)],
            x=(rows["mean_s"] * factor).tolist(),
            orientation="h",
            name=segment,
            text=figures,
            textposition="inside",
            insidetextanchor="middle",
            textangle=0,
            constraintext="none",
            marker=_look(segment),
            hovertext=rows["hover"].tolist(),
            hoverinfo="text",
        )
    figure.update_yaxes(
        categoryorder="array", categoryarray=list(bars.values()), range=[len(bars) - 0.5, -0.5], automargin=True
    )
    figure.update_xaxes(title_text=f"mean time in each stage ({unit}); hatched = waiting", rangemode="tozero")
    dressed(
        figure, title or f"Ledger by {varied}", bool(table["simulated"].any()), _FRAME_HEIGHT + _BAR_HEIGHT * len(bars)
    )
    legend = {"orientation": "v", "yref": "paper", "x": 1.01, "y": 1, "yanchor": "top", "traceorder": "normal"}
    return figure.update_layout(barmode="stack", bargap=0.28, legend=legend, margin={"l": 20, "b": 60})


def _bar_names(table: pandas.DataFrame, varied: str) -> dict[tuple[str, Any], str]:
    """(series, setting) -> what stands beside its bar, with the grade where it is not sound."""
    names = {}
    rows = table.drop_duplicates(["series", "setting"])
    order = {label: at for at, label in enumerate(dict.fromkeys(rows["series"]))}
    for row in sorted(rows.to_dict("records"), key=lambda row: (order[row["series"]], row["place"])):
        series = f"{row['series']}, " if row["series"] else ""
        grade = "" if row["grade"] == "sound" else f" [{row['grade']}]"
        names[row["series"], row["setting"]] = plain(f"{series}{varied} {setting_text(row['setting'])}{grade}")
    return names


def _segments(table: pandas.DataFrame) -> dict[str, pandas.DataFrame]:
    """What each bar is stacked from: stage (or `other`) -> series, setting, mean_s and hover text."""
    table = table[table["stage"] != ""]
    peak = table.groupby("stage")["share_ratio"].max()
    hover = [_stage_text(row) for row in table.to_dict("records")]
    segment = table["stage"].where(table["stage"].map(peak) >= _SMALL_RATIO, OTHER)
    grouped = table.assign(hover=hover, segment=segment).groupby(["segment", "series", "setting"], sort=False)
    merged = grouped.agg(mean_s=("mean_s", "sum"), hover=("hover", "<br>".join)).reset_index()
    names = [name for name in (*STAGES, OTHER) if (merged["segment"] == name).any()]
    return {name: merged[merged["segment"] == name] for name in names}


def _stage_text(row: Mapping[Any, Any]) -> str:
    return plain(
        f"{row['stage']}: {format_duration(row['mean_s'])}, {format_percent(row['share_ratio'])} of the request"
    )


def _look(segment: str) -> dict[str, Any]:
    """The colour of a segment; a wait is hatched, so that it can be told from work without colour."""
    shape = "/" if segment in _WAITS else ""
    pattern = {
        "shape": shape,
        "fillmode": "overlay",
        "fgcolor": "#000000",
        "fgopacity": 0.35,
        "size": 7,
        "solidity": 0.2,
    }
    return {"color": _COLORS[segment], "pattern": pattern, "line": {"width": 0.5, "color": GREY}}
