"""How does one figure of a scan appear: its line, its intervals, its doubtful points and its open ends?

Only sound and short points are joined. An unsteady point is hollow, a void one crossed. Where only the lower
end is known, an arrow points up from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go

from perfkit.showing.plots.look import GREY, lines, plain, scaled
from perfkit.showing.plots.points import count_text, setting_text
from perfkit.units import format_duration, format_interval, format_rate, is_absent

if TYPE_CHECKING:
    import pandas

JOINED_GRADES = ("sound", "short")
SYMBOLS = {"sound": "circle", "short": "circle", "unsteady": "circle-open", "void": "x-thin-open"}
_KEYS = {"unsteady": "unsteady: hollow, not joined", "void": "void: crossed, no result"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """What is drawn: the table's columns by stem and unit, the factor to the axis, and how the line looks."""

    stem: str  # "throughput", "p50", "p95", "p99"
    unit: str  # "rps" or "s": the end of the columns' names
    factor: float
    name: str
    group: str  # the marks of one group are shown and hidden together
    key: str  # the legend's text; "" = no entry
    color: str
    dash: str
    panel: int

    def column(self, rows: pandas.DataFrame, end: str = "") -> list[float | None]:
        """The values of one column on the axis; `end` is "low_" or "high_" for the interval."""
        return scaled(rows[f"{self.stem}_{end}{self.unit}"], self.factor)

    def marker(self, symbols: list[str]) -> dict[str, Any]:
        """Markers in the mark's colour, outline too: the outline is all that a hollow one or a cross has."""
        return {"color": self.color, "size": 8, "symbol": symbols, "line": {"width": 2, "color": self.color}}

    def bars(self, rows: pandas.DataFrame) -> dict[str, Any]:
        """Error bars from value to low and to high; an absent end has no bar."""
        ends = list(zip(self.column(rows), self.column(rows, "low_"), self.column(rows, "high_"), strict=True))
        above = [None if value is None or high is None else high - value for value, _, high in ends]
        below = [None if value is None or low is None else value - low for value, low, _ in ends]
        return {"type": "data", "array": above, "arrayminus": below, "color": self.color, "thickness": 1.3, "width": 4}


def add_mark(figure: go.Figure, rows: pandas.DataFrame, mark: Mark) -> None:
    """Add one figure of a series: the joined line, every point with its interval, arrows for open ends."""
    values = mark.column(rows)
    grades, place = rows["grade"].tolist(), rows["place"].tolist()
    joined = [value if grade in JOINED_GRADES else None for value, grade in zip(values, grades, strict=True)]
    shared = {"legendgroup": mark.group, "row": mark.panel, "col": 1}
    figure.add_scatter(
        x=place,
        y=joined,
        mode="lines",
        line={"color": mark.color, "dash": mark.dash, "width": 2},
        name=plain(mark.key or mark.name),
        showlegend=bool(mark.key),
        hoverinfo="skip",
        **shared,
    )
    shared |= {"name": plain(mark.name), "showlegend": False, "hoverinfo": "text"}
    figure.add_scatter(
        x=place,
        y=values,
        mode="markers",
        marker=mark.marker([SYMBOLS[grade] for grade in grades]),
        error_y=mark.bars(rows),
        hovertext=[point_text(row, mark) for row in rows.to_dict("records")],
        **shared,
    )
    _add_open_ends(figure, rows, mark, shared)


def _add_open_ends(figure: go.Figure, rows: pandas.DataFrame, mark: Mark, shared: dict[str, Any]) -> None:
    ends = zip(
        rows.to_dict("records"), mark.column(rows), mark.column(rows, "low_"), mark.column(rows, "high_"), strict=True
    )
    open_rows = [
        (row, low if value is None else value) for row, value, low, high in ends if low is not None and high is None
    ]
    if not open_rows:
        return
    figure.add_scatter(
        x=[row["place"] for row, _ in open_rows],
        y=[start for _, start in open_rows],
        mode="markers+text",
        marker={"symbol": "line-ew-open", "size": 14, "color": mark.color, "line": {"width": 2}},
        text="↑",
        textposition="top center",
        textfont={"size": 20, "color": mark.color},
        cliponaxis=False,
        hovertext=[point_text(row, mark) for row, _ in open_rows],
        **shared,
    )


def add_keys(figure: go.Figure, rows: pandas.DataFrame) -> None:
    """Legend entries that say what hollow points, crosses and arrows are, for those that occur."""
    for grade, text in _KEYS.items():
        if (rows["grade"] == grade).any():
            marker = {"symbol": SYMBOLS[grade], "color": GREY, "size": 9, "line": {"width": 2, "color": GREY}}
            figure.add_scatter(x=[None], y=[None], mode="markers", marker=marker, name=text, hoverinfo="skip")
    if rows["p99_low_s"].notna().any() and rows["p99_high_s"].isna().any():
        marker = {"symbol": "line-ew-open", "color": GREY, "size": 14, "line": {"width": 2}}
        figure.add_scatter(x=[None], y=[None], mode="markers", marker=marker, name="↑ at least this", hoverinfo="skip")


def point_text(row: Mapping[Any, Any], mark: Mark) -> str:
    """The hover text of a point: setting, estimate with its interval and count, grade and reasons."""
    count = "" if is_absent(row["requests"]) else f"{count_text(row['requests'])} requests"
    grade = f"{row['grade']}: {row['reasons']}" if row["reasons"] else str(row["grade"])
    simulated = "simulated" if row["simulated"] else ""
    return lines(f"{mark.name} at {setting_text(row['setting'])}", _estimate_text(row, mark), count, grade, simulated)


def _estimate_text(row: Mapping[Any, Any], mark: Mark) -> str:
    value, low, high = (row[f"{mark.stem}_{end}{mark.unit}"] for end in ("", "low_", "high_"))
    text = format_rate if mark.unit == "rps" else format_duration
    if is_absent(value):
        needs = row.get(f"{mark.stem}_needs_s")
        wait = "" if is_absent(needs) else f"; a value needs {format_duration(needs)}"
        return f"no value{wait}" if is_absent(low) else f"at least {text(low)}{wait}"
    if is_absent(low):
        return text(value)
    interval = f"{text(low)} or more" if is_absent(high) else format_interval(text(low), text(high))
    return f"{text(value)} ({interval})"
