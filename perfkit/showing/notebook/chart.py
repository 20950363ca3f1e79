"""How does a picture get into a notebook page without 5 MB each, and without a request to another machine?

plotly.js goes into the page once, in a widget without a view. A chart is a small widget that refers to it and
carries its figure as state, so that a page that connects late gets the latest figure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import anywidget
import ipywidgets
import traitlets

from perfkit.clock import NS_PER_S, REAL_CLOCK, Clock
from perfkit.showing.web import assets

if TYPE_CHECKING:
    import plotly.graph_objects as go

LEAST_GAP_NS = NS_PER_S // 5
"""At most five figures a second go to the page: more would only cost the measured machine time."""


class Runtime(anywidget.AnyWidget):
    """plotly.js from the installed plotly package, for all charts of a page. Shows nothing itself."""

    def __init__(self) -> None:
        self._esm = assets.plotly_module_js()
        super().__init__()


@cache
def runtime() -> Runtime:
    """The one runtime of this process; raises EnvironmentLacks when plotly is not installed."""
    return Runtime()


class Chart(anywidget.AnyWidget):
    """A plotly figure that follows the page's width and theme, and keeps the reader's zoom when it is redrawn.

    Any thread may draw, one at a time.
    """

    figure = traitlets.Unicode().tag(sync=True)
    runtime = traitlets.Instance(Runtime).tag(sync=True, **ipywidgets.widget_serialization)

    def __init__(self, figure: go.Figure, clock: Clock = REAL_CLOCK) -> None:
        self._esm = assets.chart_js()
        self._clock = clock
        self._next_ns = clock.now_ns() + LEAST_GAP_NS
        super().__init__(figure=figure.to_json(), runtime=runtime())

    def draw(self, figure: go.Figure) -> None:
        """Show another figure; waits where the one before it is less than a fifth of a second old."""
        self._clock.sleep_until(self._next_ns)
        self._next_ns = self._clock.now_ns() + LEAST_GAP_NS
        self.figure = figure.to_json()


class Flame(anywidget.AnyWidget):
    """A flame graph, or a remark that there is none; `selected` is the frame that was clicked last."""

    data = traitlets.Unicode().tag(sync=True)
    selected = traitlets.Dict().tag(sync=True)

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._esm = assets.flame_js()
        super().__init__(data=json.dumps(data, separators=(",", ":")))
