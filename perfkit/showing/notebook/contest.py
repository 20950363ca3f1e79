"""How does a reader move the curves of a contrast: turn a knob, measure again, see both the new and the old?

Sliders change what all sides share (a setting or a field of the load). Measure runs the contrast in a
thread of its own; the curves of the time before stay behind the new ones as thin lines.
"""

from __future__ import annotations

import dataclasses
import html
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import ipywidgets

# Whole before any thread starts: plotly looks for a pandas that another thread may have half imported.
import pandas  # noqa: F401

from perfkit import fields
from perfkit.errors import ConfigError, PerfkitError
from perfkit.measuring.scanning.contrast import Contrast, Question, contrast
from perfkit.measuring.scanning.grid import PART_OVERHEAD_S, ScanProgress
from perfkit.measuring.scanning.plan import LOAD, SERVER, find_field
from perfkit.showing.notebook.chart import Chart
from perfkit.showing.notebook.look import style_of
from perfkit.showing.notebook.views import curve_of
from perfkit.units import format_duration

_CLASS = "perfkit-contest"
Knobs = Mapping[str, Sequence[Any]]
"""Setting or load field -> the values that its slider offers, the first one being where it stands."""


class Contest:
    """Sliders, a button and the curves of all sides. Show it as a cell's value; `measure` does what the button does."""

    def __init__(self, question: Question, knobs: Knobs | None = None) -> None:
        self.latest: Contrast | None = None
        self._question = question
        self._before: Contrast | None = None
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None
        self._sliders = {name: _slider(name, values) for name, values in (knobs or {}).items()}
        self._button = ipywidgets.Button(description="Measure", button_style="primary", icon="play")
        self._status, self._problem = ipywidgets.HTML(), ipywidgets.HTML()
        self._chart_box = ipywidgets.VBox([])
        self._button.on_click(lambda _: self.start())
        self._box = self._arranged()
        self._say(f"ready; takes about {format_duration(self._seconds())}")

    def _repr_mimebundle_(self, **options: Any) -> Any:
        return self._box._repr_mimebundle_(**options)

    def _arranged(self) -> ipywidgets.VBox:
        row = ipywidgets.HBox([self._button, self._status], layout={"align_items": "center"})
        look = ipywidgets.HTML(style_of(_CLASS))
        box = ipywidgets.VBox([*self._sliders.values(), row, look, self._problem, self._chart_box])
        box.add_class(_CLASS)
        return box

    @property
    def question(self) -> Question:
        """What would be measured with the sliders where they are; raises ConfigError."""
        asked = self._question
        server: dict[str, Any] = {}
        client: dict[str, Any] = {}
        for name, slider in self._sliders.items():
            full = find_field(name, asked.load)
            target, prefix = (server, SERVER) if full.startswith(SERVER) else (client, LOAD)
            target[full.removeprefix(prefix)] = slider.value
        sides = {label: {**server, **changes} for label, changes in asked.sides.items()}
        return dataclasses.replace(asked, sides=sides, load=fields.replace(asked.load, client))

    def start(self) -> None:
        """Begin to measure; raises ConfigError while a measurement goes on."""
        if self._thread is not None and self._thread.is_alive():
            raise ConfigError("a measurement is going on; wait until it has ended")
        self._problem.value, self._error = "", None
        self._button.disabled = True
        self._say("starting")
        self._thread = threading.Thread(target=self._run, name="perfkit-contest", daemon=True)
        self._thread.start()

    def wait(self) -> Contrast:
        """The contrast, once it is measured; raises what went wrong."""
        if self._thread is None:
            raise ConfigError("nothing was measured yet; press Measure or call start()")
        self._thread.join()
        if self._error is not None:
            raise self._error
        assert self.latest is not None
        return self.latest

    def measure(self) -> Contrast:
        """Measure with the sliders where they are, and wait for it."""
        self.start()
        return self.wait()

    def _run(self) -> None:
        try:
            found = contrast(self.question, watch=self._watch)
            self._before, self.latest = self.latest, found
            self._draw()
            self._say(f"measured; archived in {found.scan.folder}")
        except Exception as error:  # told on the screen, and raised again in wait()
            self._error = error
            text = str(error) if isinstance(error, PerfkitError) else f"{type(error).__name__}: {error}"
            self._problem.value = f"<span class='error' role='alert'>{html.escape(text)}</span>"
            self._say("not measured")
        finally:
            self._button.disabled = False

    def _watch(self, progress: ScanProgress) -> None:
        varied = ", ".join(
            f"{value}" if name == "side" else f"{name} {value}" for name, value in progress.varied.items()
        )
        left_s = (progress.parts - progress.part) * (progress.part_seconds + PART_OVERHEAD_S)
        self._say(f"measuring {varied}; about {format_duration(left_s)} left")

    def _draw(self) -> None:
        assert self.latest is not None
        figure = curve_of(self.latest, self._before)
        if self._chart_box.children:
            self._chart_box.children[0].draw(figure)
        else:
            self._chart_box.children = [Chart(figure)]

    def _seconds(self) -> float:
        asked = self._question
        parts = len(asked.sides) * len(asked.values) * asked.rounds
        return parts * (asked.seconds / asked.rounds + PART_OVERHEAD_S)

    def _say(self, text: str) -> None:
        self._status.value = f"<span role='status'>{html.escape(text)}</span>"


def _slider(name: str, values: Sequence[Any]) -> Any:
    return ipywidgets.SelectionSlider(
        options=sorted(values),
        value=values[0],
        description=name,
        continuous_update=False,
        style={"description_width": "160px"},
        layout={"width": "96%"},
    )
