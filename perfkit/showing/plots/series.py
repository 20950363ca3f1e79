"""How did values that another tool recorded go over time? One panel a quantity, one line a source."""

from __future__ import annotations

from typing import TYPE_CHECKING

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from perfkit.clock import NS_PER_S
from perfkit.showing.plots.look import COLORS, dressed, lines, plain

if TYPE_CHECKING:
    import pandas

_PANELS = 12  # quantities that are drawn, in the order of the file
_POINTS = 2000  # of one line
_SIZES = {"ratio": (100.0, "%"), "bytes": (1 / (1 << 30), "GiB"), "Hz": (1e-6, "MHz")}
_PANEL_HEIGHT, _REST_HEIGHT, _LEGEND_ROW = 130, 150, 22


def series_table(series: pandas.DataFrame) -> pandas.DataFrame:
    """One row a value: `quantity` (name and unit), `source`, `elapsed_s` since the first, `value` in that unit.

    From a run's series table. Ratios become per cent, bytes GiB, Hz MHz; long lines are thinned evenly.
    """
    import pandas

    if not len(series):
        return pandas.DataFrame({"quantity": [], "source": [], "elapsed_s": [], "value": []})
    elapsed = (series["time_ns"] - series["time_ns"].min()).astype("float64") / NS_PER_S
    sizes = [_SIZES.get(unit, (1.0, unit)) for unit in series["unit"]]
    quantity = [f"{name} ({unit})" for name, (_, unit) in zip(series["name"], sizes, strict=True)]
    value = series["value"].astype("float64") * [factor for factor, _ in sizes]
    table = series.assign(quantity=quantity, elapsed_s=elapsed, value=value)[
        ["quantity", "source", "elapsed_s", "value"]
    ]
    parts = [part.iloc[:: -(-len(part) // _POINTS)] for _, part in table.groupby(["quantity", "source"], sort=False)]
    return pandas.concat(parts, ignore_index=True)


def plot_series(table: pandas.DataFrame, *, title: str) -> go.Figure:
    """A panel a quantity; the same source has the same colour in all of them."""
    quantities, sources = list(dict.fromkeys(table["quantity"]))[:_PANELS], list(dict.fromkeys(table["source"]))
    rows = max(1, len(quantities))
    figure = make_subplots(rows=rows, cols=1, shared_xaxes=True, vertical_spacing=0.16 / rows)
    told: set[str] = set()
    for row, quantity in enumerate(quantities, 1):
        for source, part in table[table["quantity"] == quantity].groupby("source", sort=False):
            name = str(source)
            figure.add_scatter(
                x=part["elapsed_s"].tolist(),
                y=part["value"].tolist(),
                mode="lines",
                name=plain(name),
                legendgroup=name,
                showlegend=name not in told,
                line={"color": COLORS[sources.index(name) % len(COLORS)], "width": 2},
                row=row,
                col=1,
            )
            told.add(name)
        figure.update_yaxes(title_text=lines(*quantity.split(" ")), rangemode="tozero", row=row, col=1)
    figure.update_xaxes(title_text="time since the first look (s)", row=rows, col=1)
    bottom = 60 + _LEGEND_ROW * -(-len(sources) // 4)
    dressed(figure, title, False, _REST_HEIGHT // 2 + bottom + rows * _PANEL_HEIGHT)
    return figure.update_layout(margin={"b": bottom})
