"""How does a person turn a service's knobs and watch what happens, inside a notebook?

Sliders, Start and Stop, a live chart, and the result when a run ends. Server settings take effect at once,
the number of users with the next run. Whatever goes wrong is written into the panel.
"""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

import ipywidgets

from perfkit.measuring.experiment import Run
from perfkit.measuring.load.loops import ClosedLoop
from perfkit.measuring.phase import Progress
from perfkit.measuring.service import Service
from perfkit.showing.notebook.controls import CONCURRENCY, MS_PER_S, WINDOW, make_sliders
from perfkit.showing.notebook.live_view import LiveView
from perfkit.showing.notebook.look import style_of
from perfkit.showing.notebook.session import RUNNING, STARTING, Session
from perfkit.showing.notebook.table import table_of, to_html
from perfkit.units import format_duration

_CLASS = "perfkit-panel"
_HINT = "Threads, batch and window take effect at once, users with the next run."


class Panel:
    """Controls and a live view of a service, which is launched at the first start. Show it as a cell's value."""

    def __init__(self, model: str = "minilm", seconds: float = 10.0, out: Path | None = None) -> None:
        self.seconds = seconds
        self._session = Session(model, self, out)
        self._live = LiveView(self._session.settings.is_simulated)
        self._sliders = make_sliders(self._session.settings)
        self._start = ipywidgets.Button(description="Start", button_style="primary", icon="play")
        self._stop = ipywidgets.Button(description="Stop", icon="stop")
        self._status, self._error, self._result = (ipywidgets.HTML() for _ in range(3))
        self._box = self._arranged()
        self._listen()
        self.show_state("")

    def _repr_mimebundle_(self, **options: Any) -> Any:
        return self._box._repr_mimebundle_(**options)

    def _arranged(self) -> ipywidgets.VBox:
        columns = {"grid_template_columns": "repeat(2, minmax(0, 1fr))", "width": "100%"}
        sliders = ipywidgets.GridBox(list(self._sliders.values()), layout=columns)
        hint = ipywidgets.HTML(f"{style_of(_CLASS)}<span class='quiet'>{_HINT}</span>")
        buttons = ipywidgets.HBox([self._start, self._stop, self._status], layout={"align_items": "center"})
        box = ipywidgets.VBox([sliders, hint, buttons, self._error, self._live.chart, self._result])
        box.add_class(_CLASS)
        return box

    def _listen(self) -> None:
        for name in self._sliders.keys() - {CONCURRENCY}:
            self._sliders[name].observe(lambda change, name=name: self._apply(name, change["new"]), "value")
        self._start.on_click(lambda _: self.start())
        self._stop.on_click(lambda _: self.stop())

    def _apply(self, name: str, value: float) -> None:
        self._error.value = ""
        self._session.configure({name: value / MS_PER_S if name == WINDOW else value})

    @property
    def service(self) -> Service | None:
        """The service, once it has been launched."""
        return self._session.service

    def start(self) -> None:
        """Begin a run at the present settings; raises ConfigError while another goes on."""
        self._session.start(ClosedLoop(concurrency=self._sliders[CONCURRENCY].value), self.seconds)

    def stop(self) -> None:
        """End the run early; what was measured is archived."""
        self._session.stop()

    def wait(self) -> Run:
        """The run, once it has ended; raises what it ended with."""
        return self._session.wait()

    def close(self) -> None:
        """End the run and the service; the panel stays, and its next start launches a new service."""
        self._session.close()

    def show_state(self, state: str) -> None:
        """What goes on; the session tells."""
        self._start.disabled, self._stop.disabled = bool(state), state != RUNNING
        self._say(state or f"ready for a run of {format_duration(self.seconds)}")
        if state == STARTING:
            self._error.value = self._result.value = ""
            self._live.begin(self._title())

    def show_progress(self, progress: Progress) -> None:
        """The run goes on; the session tells. A chart that fails must not cost the measurement."""
        if not self._stop.disabled:
            self._say(f"running: {format_duration(max(0.0, progress.total_s - progress.elapsed_s))} left")
        try:
            self._live.follow(progress, self._title())
        except Exception as error:
            self.show_error(f"the live chart has stopped ({type(error).__name__}: {error}); the run goes on")

    def show_run(self, run: Run) -> None:
        """The run is archived; the session tells."""
        self._result.value = to_html(table_of(run))
        self._live.finish(run, self._title())

    def show_error(self, text: str) -> None:
        """Something went wrong; the session tells."""
        self._error.value = f"<span class='error' role='alert'>{html.escape(text)}</span>"

    def _say(self, text: str) -> None:
        self._status.value = f"<span role='status'>{html.escape(text)}</span>"

    def _title(self) -> str:
        settings, users = self._session.settings, self._sliders[CONCURRENCY].value
        batch = f"max batch {settings.batch.max_size}, window {format_duration(settings.batch.max_delay_s)}"
        return f"{settings.model}, workers {settings.workers}, {batch}, users {users}"
