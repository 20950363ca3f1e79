"""What do all pictures share: colours, template, safe labels, and the unit of a latency axis?"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable
from typing import Any

import plotly.graph_objects as go

from perfkit.units import is_absent

BLUE, ORANGE, GREEN, PURPLE, VERMILION, SKY, YELLOW = COLORS = (
    "#2b8cce",
    "#e69f00",
    "#009e73",
    "#cc79a7",
    "#d55e00",
    "#56b4e9",
    "#f0e442",
)
"""Okabe and Ito's colours, the blue lighter so that it reads on dark paper too: colour blindness keeps them apart."""
GREY = "#9aa0a6"
INK = "#808080"
"""Text where no page gives a colour: legible on white and on black. chart.js replaces it by the page's own."""

_AXIS = {
    "gridcolor": "rgba(128,128,128,0.2)",
    "zeroline": False,
    "ticks": "outside",
    "ticklen": 4,
    "title": {"standoff": 8},
}
_TEMPLATE = go.layout.Template(
    layout={
        "colorway": COLORS,
        "font": {"family": "system-ui, sans-serif", "size": 13, "color": INK},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 70, "r": 24, "t": 64, "b": 100},
        "title": {"x": 0, "xref": "paper", "xanchor": "left", "font": {"size": 16}},
        "legend": {"orientation": "h", "yref": "container", "yanchor": "bottom", "y": 0.01, "xanchor": "left", "x": 0},
        "hoverlabel": {"align": "left"},
        "xaxis": _AXIS,
        "yaxis": _AXIS,
    }
)


def dressed(figure: go.Figure, title: str, simulated: bool, height: int) -> go.Figure:
    """The figure with perfkit's template, its title and a fixed height; simulated figures say so in the title."""
    return figure.update_layout(template=_TEMPLATE, title_text=titled(title, simulated), height=height)


def titled(title: str, simulated: bool) -> str:
    """A title as plotly shows it: plain text, and "(simulated)" when the figures are not from a real device."""
    return f"{plain(title)} (simulated)" if simulated else plain(title)


def faded(color: str, share: float = 0.25) -> str:
    """A colour of ours as the filling of an area, through which the grid is seen."""
    red, green, blue = (int(color[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {share:g})"


def plain(text: object) -> str:
    """A label that plotly shows letter by letter: its own small HTML has no effect."""
    return html.escape(str(text), quote=False)


def lines(*parts: str) -> str:
    """Hover text of several lines, each shown letter by letter; empty ones are left out."""
    return "<br>".join(plain(part) for part in parts if part)


def latency_unit(seconds: Iterable[float | None]) -> tuple[float, str]:
    """The factor from seconds and the unit in which an axis up to the largest of these reads best."""
    top = max((value for value in seconds if value is not None and not is_absent(value)), default=0.0)
    if top >= 10:
        return 1.0, "s"
    return (1e3, "ms") if top >= 1e-3 else (1e6, "µs")


def log_axis(values: Iterable[float | None]) -> dict[str, Any]:
    """A logarithmic axis over these values whose ticks at 1, 2 and 5 carry whole numbers; for `update_yaxes`."""
    known = [value for value in values if value is not None and not is_absent(value) and value > 0]
    decades = range(math.floor(math.log10(min(known))), math.ceil(math.log10(max(known))) + 1)
    ticks = [step * 10.0**decade for decade in decades for step in (1, 2, 5)]
    return {"type": "log", "tickvals": ticks, "ticktext": [f"{tick:,.12g}" for tick in ticks]}


def scaled(values: Iterable[float | None], factor: float) -> list[float | None]:
    """Values on the axis; absent stays absent (a gap, never a zero)."""
    return [None if value is None or is_absent(value) else value * factor for value in values]
