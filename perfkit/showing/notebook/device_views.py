"""How does a notebook show what the checks of a device found? A picture where there is one, and each line's verdict."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from perfkit.measuring.gpucheck.child import Findings

if TYPE_CHECKING:
    import ipywidgets
    import plotly.graph_objects as go

Picture = Callable[[Findings], "go.Figure"]
_CELL = "padding: 2px 12px 2px 0; text-align: left; vertical-align: top"


def show_findings(findings: Findings) -> ipywidgets.VBox:
    """The picture of the first check that has one, over the lines of all; a line that failed is bold."""
    import ipywidgets

    from perfkit.showing.notebook.chart import Chart

    parts: list[Any] = [ipywidgets.HTML(_lines(findings))]
    numbers = {line["id"].partition(".")[0] for line in findings.lines if line["figures"]}
    pictures = [picture for number, picture in _pictures().items() if number in numbers]
    if pictures:
        parts.insert(0, Chart(pictures[0](findings)))
    return ipywidgets.VBox(parts)


def _pictures() -> Mapping[str, Picture]:
    from perfkit.showing.plots import device as plots

    def of(plot: Callable[..., go.Figure], *ids: str) -> Picture:
        return lambda found: plot(*(found.figures(line_id) for line_id in ids), simulated=found.simulated)

    return {
        "5": of(plots.plot_copies, "5.pinned", "5.overlap"),
        "6": of(plots.plot_sizes, "6.line"),
        "8": of(plots.plot_threads, "8.little"),
        "9": of(plots.plot_priority, "9.saving"),
        "10": of(plots.plot_meters, "10.util", "10.monitors"),
        "11": of(plots.plot_waiting, "11.cpu", "11.latency"),
        "15": of(plots.plot_convoy, "15.wake_lag", "15.busy"),
    }


def _lines(findings: Findings) -> str:
    rows = "".join(_row(line) for line in findings.lines)
    note = "simulated: these lines try the checks out and say nothing about a GPU" if findings.simulated else ""
    heading = html.escape(f"{findings.device}{'; ' if note else ''}{note}")
    return f"<div style='margin: 4px 0'>{heading}</div><table style='line-height: 1.4'>{rows}</table>"


def _row(line: Mapping[str, Any]) -> str:
    weight = "bold" if line["status"] == "fail" else "normal"
    cells = (line["status"], line["name"], line["reason"])
    texts = "".join(f"<td style='{_CELL}'>{html.escape(str(text))}</td>" for text in cells)
    return f"<tr style='font-weight: {weight}'>{texts}</tr>"
