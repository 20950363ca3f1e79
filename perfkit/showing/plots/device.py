"""What did the checks of a device find? Bars where two ways are compared, curves where something varies.

Each function takes the figures of a check's lines, as `perfkit gpucheck --json` prints them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from perfkit.showing.plots.look import COLORS, GREY, dressed, latency_unit, plain, scaled

Figures = Mapping[str, Any]
_HEIGHT = 400
_BARS_HEIGHT = 340
_NO_LEGEND = 40  # pixels below the axis
_LEVELS = {"inference_mode": "kernel by kernel", "cuda_graph": "as one CUDA graph"}
_CLAIMED_SAVING = 0.40


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """One panel of bars over a common axis; None = not told by the device.

    The colours of the bars begin with the one numbered `first_hue` and repeat after `hues` of them.
    """

    axis: str
    values: Mapping[str, float | None]
    first_hue: int = 0
    hues: int = len(COLORS)


def plot_bars(panels: Sequence[Bars], *, title: str, simulated: bool) -> go.Figure:
    """Panels side by side, each value written above its bar."""
    figure = make_subplots(rows=1, cols=len(panels), horizontal_spacing=0.14)
    for at, panel in enumerate(panels, 1):
        told = ["not told" if value is None else format(value, ".3g") for value in panel.values.values()]
        figure.add_bar(
            x=[plain(name) for name in panel.values],
            y=list(panel.values.values()),
            text=told,
            textposition="outside",
            cliponaxis=False,
            marker_color=[COLORS[panel.first_hue + number % panel.hues] for number in range(len(told))],
            showlegend=False,
            hovertemplate="%{x}: %{text}<extra></extra>",
            row=1,
            col=at,
        )
        figure.update_yaxes(title_text=panel.axis, rangemode="tozero", row=1, col=at)
    return dressed(figure, title, simulated, _BARS_HEIGHT).update_layout(margin_b=_NO_LEGEND)


def plot_copies(pinned: Figures, overlap: Figures, *, simulated: bool) -> go.Figure:
    """Bandwidth from both kinds of host memory; a copy and a computation one after the other and together."""
    one_by_one_s = overlap["copy_s"] + overlap["chain_s"]
    rates = {"pageable": pinned["pageable_bytes_per_s"] / 1e9, "pinned": pinned["pinned_bytes_per_s"] / 1e9}
    times = {"one after the other": one_by_one_s * 1e3, "together": overlap["together_s"] * 1e3}
    panels = [Bars(axis="host to device (GB/s)", values=rates), Bars(axis="copy and computation (ms)", values=times)]
    return plot_bars(panels, title="Copies to the device", simulated=simulated)


def plot_priority(saving: Figures, *, simulated: bool) -> go.Figure:
    """Latency of both priorities, and what high priority saves, over the background load."""
    loads = [float(load) * 100 for load in saving]
    levels = list(saving.values())
    factor, unit = latency_unit([level["normal_s"] for level in levels])
    figure = make_subplots(rows=1, cols=2, horizontal_spacing=0.14)
    for name, column, color in (("normal", "normal_s", COLORS[0]), ("high", "high_s", COLORS[1])):
        latencies = scaled([level[column] for level in levels], factor)
        figure.add_scatter(
            x=loads, y=latencies, name=f"{name} priority", line_color=color, mode="lines+markers", row=1, col=1
        )
    savings = [-100 * level["saving_ratio"] for level in levels]
    figure.add_scatter(
        x=loads, y=savings, name="change by high priority", line_color=COLORS[2], mode="lines+markers", row=1, col=2
    )
    figure.add_hline(
        y=-100 * _CLAIMED_SAVING,
        line={"dash": "dash", "color": GREY},
        annotation_text="an article: −40 %",
        annotation_position="top right",
        row=1,
        col=2,
    )
    figure.update_xaxes(title_text="background load (%)")
    figure.update_yaxes(title_text=f"mean latency ({unit})", rangemode="tozero", row=1, col=1)
    figure.update_yaxes(title_text="change (%)", rangemode="tozero", row=1, col=2)
    return dressed(figure, "Stream priority under load", simulated, _HEIGHT)


def plot_sizes(line: Figures, *, simulated: bool) -> go.Figure:
    """Time of one call over its batch size, launched kernel by kernel and as one graph."""
    times = {level: part["seconds_by_size"] for level, part in line.items()}
    factor, unit = latency_unit([seconds for part in times.values() for seconds in part.values()])
    figure = go.Figure()
    for at, (level, part) in enumerate(times.items()):
        figure.add_scatter(
            x=[int(size) for size in part],
            y=scaled(part.values(), factor),
            name=_LEVELS.get(level, level),
            line_color=COLORS[at],
            mode="lines+markers",
        )
    figure.update_xaxes(title_text="requests in a call", rangemode="tozero")
    figure.update_yaxes(title_text=f"time of a call ({unit})", rangemode="tozero")
    return dressed(figure, "One call, by its size", simulated, _HEIGHT)


def plot_threads(little: Figures, *, simulated: bool) -> go.Figure:
    """Throughput over the number of threads that feed the device."""
    figure = go.Figure()
    for at, (level, name) in enumerate(_LEVELS.items()):
        rows = [row for row in little["rows"] if row["level"] == level]
        figure.add_scatter(
            x=[row["threads"] for row in rows],
            y=[row["throughput_rps"] for row in rows],
            name=name,
            line_color=COLORS[at],
            mode="lines+markers",
        )
    figure.update_xaxes(title_text="threads", rangemode="tozero")
    figure.update_yaxes(title_text="throughput (calls/s)", rangemode="tozero")
    return dressed(figure, "Threads that feed one device", simulated, _HEIGHT)


def plot_waiting(cpu: Figures, latency: Figures, *, simulated: bool) -> go.Figure:
    """Processor time and wake lag of eight threads that wait, asleep and spinning."""
    busy = {"asleep": cpu["asleep_cpu_s"] / cpu["wall_s"], "spinning": cpu["spinning_cpu_s"] / cpu["wall_s"]}
    late = {"asleep": latency["asleep_s"] * 1e6, "spinning": latency["spinning_s"] * 1e6}
    panels = [Bars(axis="cores busy with waiting", values=busy), Bars(axis="median wake lag (µs)", values=late)]
    return plot_bars(panels, title="Eight threads that wait for the device", simulated=simulated)


def plot_meters(util: Figures, monitors: Figures, *, simulated: bool) -> go.Figure:
    """Utilisation beside the share of multiprocessors that work."""
    told = {
        "at rest": util["rest_ratio"],
        "one block": util["spinning_ratio"],
        "matrix products": util["multiplying_ratio"],
    }
    active = {
        "one block": monitors.get("spinning_sm_active_ratio"),
        "matrix products": monitors.get("multiplying_sm_active_ratio"),
    }
    panels = [
        Bars(axis="GPU utilisation (%)", values=_percent(told)),
        Bars(axis="multiprocessors active (%)", values=_percent(active), first_hue=1),
    ]
    return plot_bars(panels, title="Two meters of the same work", simulated=simulated)


def plot_convoy(lag: Figures, busy: Figures, *, simulated: bool) -> go.Figure:
    """Wake lag of the device's threads, and its utilisation, with and without a thread that computes in Python."""
    lags = {
        "P50 alone": lag["alone_p50_s"],
        "P50 beside": lag["beside_p50_s"],
        "P99 alone": lag["alone_p99_s"],
        "P99 beside": lag["beside_p99_s"],
    }
    used = {"alone": busy["alone_gpu_util_ratio"], "beside": busy["beside_gpu_util_ratio"]}
    panels = [
        Bars(axis="wake lag (ms)", values={name: value * 1e3 for name, value in lags.items()}, hues=2),
        Bars(axis="GPU utilisation (%)", values=_percent(used)),
    ]
    return plot_bars(panels, title="A thread that computes in Python beside four workers", simulated=simulated)


def _percent(ratios: Mapping[str, float | None]) -> dict[str, float | None]:
    return {name: None if ratio is None else 100 * ratio for name, ratio in ratios.items()}
