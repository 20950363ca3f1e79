"""What did the GPU do over time: was anything running, how much of it worked, at which memory, power and clock?

"At least one kernel ran" and "multiprocessors that worked" stand in one panel, because the first is so often
taken for the second. What was not recorded has no line; a field that failed for a while has a gap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from perfkit.clock import NS_PER_S
from perfkit.showing.plots.look import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION, dressed, plain, scaled

if TYPE_CHECKING:
    import pandas

_PREFIX, _SIMULATED = "gpu:", "gpu:simulated"
_PANEL_HEIGHT, _REST_HEIGHT = 150, 140
_LEGEND_ROW, _LEGEND_COLUMNS = 22, 3
_DASHES = ("solid", "dot", "dash", "longdash")  # one a GPU, where there are several


@dataclass(frozen=True, slots=True, kw_only=True)
class _Curve:
    """A series and how it is drawn: its panel, its name for people, what one of its units is on the axis."""

    name: str
    panel: str
    label: str
    color: str
    factor: float = 1.0


_PANELS = ("activity (%)", "memory (GiB)", "power (W)", "clock (MHz)", "PCIe (MB/s)")
_CURVES = (
    _Curve(name="gpu_util", panel="activity (%)", label="at least one kernel ran", color=BLUE, factor=100.0),
    _Curve(name="sm_active", panel="activity (%)", label="multiprocessors that worked", color=VERMILION, factor=100.0),
    _Curve(
        name="sm_occupancy", panel="activity (%)", label="warps of the most there can be", color=ORANGE, factor=100.0
    ),
    _Curve(name="tensor_active", panel="activity (%)", label="tensor cores", color=PURPLE, factor=100.0),
    _Curve(name="dram_active", panel="activity (%)", label="memory bandwidth", color=GREEN, factor=100.0),
    _Curve(name="memory_used", panel="memory (GiB)", label="memory used", color=GREEN, factor=1 / (1 << 30)),
    _Curve(name="power", panel="power (W)", label="power, mean of the last second", color=ORANGE),
    _Curve(name="power_instant", panel="power (W)", label="power at the instant", color=VERMILION),
    _Curve(name="sm_clock", panel="clock (MHz)", label="multiprocessor clock", color=PURPLE, factor=1e-6),
    _Curve(name="pcie_tx", panel="PCIe (MB/s)", label="from the GPU", color=SKY, factor=1e-6),
    _Curve(name="pcie_rx", panel="PCIe (MB/s)", label="to the GPU", color=BLUE, factor=1e-6),
)
_RATES = {"pcie_tx_rate": "pcie_tx", "pcie_rx_rate": "pcie_rx"}  # the same quantity from an older driver
_COUNTERS = {"sm_active": "s", "pcie_tx": "bytes", "pcie_rx": "bytes"}  # drawn as growth a second


def gpu_table(series: pandas.DataFrame, simulated: bool = False) -> pandas.DataFrame:
    """One row a value: `gpu`, `elapsed_s` since the first, `name`, `value` in base units, counters as growth a second.

    From a run's series table; a simulated run shows its simulated device, any other its real GPUs.
    """
    import pandas

    sources = series["source"].astype(str)
    is_gpu = sources.str.startswith(_PREFIX) & ~sources.str.contains(":pid:") & ((sources == _SIMULATED) == simulated)
    rows = series[is_gpu].assign(name=series["name"].replace(_RATES), gpu=sources.str.removeprefix(_PREFIX))
    wanted = rows[rows["name"].isin([curve.name for curve in _CURVES])].sort_values("time_ns", kind="stable")
    parts = [_values(part) for _, part in wanted.groupby(["gpu", "name", "unit"], sort=False)]
    if not parts:
        return pandas.DataFrame({"gpu": [], "elapsed_s": [], "name": [], "value": []})
    table = pandas.concat(parts, ignore_index=True)
    elapsed = (table["time_ns"] - table["time_ns"].min()).astype("float64") / NS_PER_S
    return table.assign(elapsed_s=elapsed)[["gpu", "elapsed_s", "name", "value"]]


def _values(part: pandas.DataFrame) -> pandas.DataFrame:
    """A gauge as it is; a counter as its growth a second, at the later of the two instants."""
    name, unit = part["name"].iloc[0], part["unit"].iloc[0]
    plain_part = part[["gpu", "name", "time_ns", "value"]]
    if _COUNTERS.get(name) != unit:
        return plain_part
    seconds = part["time_ns"].diff().astype("float64") / NS_PER_S
    growth = part["value"].astype("float64").diff()
    is_growth = (seconds > 0) & (growth >= 0)  # a counter that falls has wrapped
    return plain_part.assign(value=growth / seconds)[is_growth]


def plot_gpu(table: pandas.DataFrame, *, title: str = "GPU", simulated: bool = False) -> go.Figure:
    """A panel a quantity that was recorded, from `gpu_table`; several GPUs differ in their dashes."""
    names = set(table["name"])
    panels = [panel for panel in _PANELS if any(curve.panel == panel and curve.name in names for curve in _CURVES)]
    rows = max(1, len(panels))
    figure = make_subplots(rows=rows, cols=1, shared_xaxes=True, vertical_spacing=0.16 / rows)
    gpus = list(dict.fromkeys(table["gpu"]))
    for at, gpu in enumerate(gpus):
        style = {"dash": _DASHES[at % len(_DASHES)], "width": 2}
        mine = table[table["gpu"] == gpu]
        whose = f", {gpu}" if len(gpus) > 1 else ""
        for curve in _CURVES:
            values = mine[mine["name"] == curve.name]
            if len(values):
                _add(figure, curve, values, {"line": style, "whose": whose, "row": panels.index(curve.panel) + 1})
    for place, panel in enumerate(panels, 1):
        figure.update_yaxes(title_text=panel, rangemode="tozero", row=place, col=1)
    figure.update_xaxes(title_text="time since the first look (s)", row=rows, col=1)
    bottom = _REST_HEIGHT // 2 + _LEGEND_ROW * -(
        -len(figure.data) // _LEGEND_COLUMNS
    )  # the axis title, then the legend
    dressed(figure, title, simulated, _REST_HEIGHT // 2 + bottom + rows * _PANEL_HEIGHT)
    return figure.update_layout(margin={"b": bottom})


def _add(figure: go.Figure, curve: _Curve, values: pandas.DataFrame, where: dict[str, Any]) -> None:
    label = plain(f"{curve.label}{where['whose']}")
    figure.add_scatter(
        x=values["elapsed_s"].tolist(),
        y=scaled(values["value"], curve.factor),
        mode="lines+markers",
        marker={"size": 3},
        line={**where["line"], "color": curve.color},
        name=label,
        hovertemplate=f"{label}: %{{y:.4g}}<extra></extra>",
        row=where["row"],
        col=1,
    )
