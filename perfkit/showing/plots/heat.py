"""How do two settings together change throughput or latency? One cell a point, coloured and written out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go

from perfkit.errors import ConfigError
from perfkit.showing.plots.look import dressed, lines, plain
from perfkit.showing.plots.points import quantile_columns, setting_text
from perfkit.units import format_duration, format_interval, format_rate, is_absent

if TYPE_CHECKING:
    import pandas

Point = Mapping[str, Any]
_SCALE = [[0.0, "#e9eef3"], [1.0, "#56b4e9"]]  # one hue, light throughout: dark text reads in every cell and theme
_CELL_INK = "#14202b"
_CELL = 84  # pixels a row
_AROUND = 190  # pixels for title, axes and the remark below


def heat_table(points: Sequence[Point]) -> pandas.DataFrame:
    """One row a point of a grid of two settings: `across`, `down` (as text, in the order of the points), throughput
    with its interval, P50, P99, grade, reasons. Raises ConfigError unless exactly two settings vary."""
    import pandas

    names = list(points[0]["varied"]) if points else []
    if len(names) != 2:
        raise ConfigError(f"the points vary {', '.join(names) or 'nothing'}; a heat map takes a grid of two settings")
    return pandas.DataFrame([_row(point, names) for point in points])


def _row(point: Point, names: Sequence[str]) -> dict[str, Any]:
    down, across = (setting_text(point["varied"][name]) for name in names)
    rate = point.get("throughput_rps") or {}
    return {
        "down": down,
        "across": across,
        "throughput_rps": rate.get("value"),
        "throughput_low_rps": rate.get("low"),
        "throughput_high_rps": rate.get("high"),
        **quantile_columns(point, "p50"),
        **quantile_columns(point, "p99"),
        "grade": point["grade"],
        "reasons": "; ".join(str(reason) for reason in point.get("reasons") or ()),
        "simulated": bool(point.get("simulated", False)),
    }


def plot_heat(table: pandas.DataFrame, names: Sequence[str], *, title: str = "Throughput") -> go.Figure:
    """Throughput by colour over two settings, `names` being (down, across). A cell that is unsteady says so; one
    without a result stays empty."""
    down, across = (list(table[axis].unique()) for axis in ("down", "across"))
    cells = {(row["down"], row["across"]): row for row in table.to_dict("records")}
    rows = [[cells.get((y, x)) for x in across] for y in down]
    figure = go.Figure(
        go.Heatmap(
            x=[plain(value) for value in across],
            y=[plain(value) for value in down],
            z=[[_rate(cell) for cell in row] for row in rows],
            text=[[_label(cell) for cell in row] for row in rows],
            texttemplate="%{text}",
            textfont={"color": _CELL_INK},
            hovertext=[[_hover(cell, names) for cell in row] for row in rows],
            hoverinfo="text",
            colorscale=_SCALE,
            colorbar={"title": {"text": "req/s"}, "outlinewidth": 0},
            xgap=3,
            ygap=3,
        )
    )
    figure.update_xaxes(title_text=plain(names[1]), type="category", showgrid=False)
    figure.update_yaxes(title_text=plain(names[0]), type="category", showgrid=False, autorange="reversed")
    height = _AROUND + _CELL * len(down)
    return dressed(figure, title, bool(table["simulated"].any()), height)


def _rate(cell: Mapping[Any, Any] | None) -> float | None:
    return None if cell is None or is_absent(cell["throughput_rps"]) else float(cell["throughput_rps"])


def _label(cell: Mapping[Any, Any] | None) -> str:
    if cell is None:
        return ""
    if _rate(cell) is None:
        return plain(cell["grade"])
    p50 = "" if is_absent(cell["p50_s"]) else f"P50 {format_duration(cell['p50_s'])}"
    remark = "unsteady" if cell["grade"] == "unsteady" else ""
    return lines(format_rate(cell["throughput_rps"]), p50, remark)


def _hover(cell: Mapping[Any, Any] | None, names: Sequence[str]) -> str:
    if cell is None:
        return "not measured"
    where = f"{names[0]} {cell['down']}, {names[1]} {cell['across']}"
    grade = f"{cell['grade']}: {cell['reasons']}" if cell["reasons"] else str(cell["grade"])
    return lines(where, _interval(cell), grade, "simulated" if cell["simulated"] else "")


def _interval(cell: Mapping[Any, Any]) -> str:
    if _rate(cell) is None:
        return "no value"
    ends = (cell["throughput_low_rps"], cell["throughput_high_rps"])
    text = format_rate(cell["throughput_rps"])
    return text if any(map(is_absent, ends)) else f"{text} ({format_interval(*map(format_rate, ends))})"
