"""How does a notebook keep a service running and measure it again and again, without blocking its cells?

The service is launched when it is first needed, and again when it has died. One run at a time goes on in a
thread of its own; what goes wrong there is told to the screen and kept for whoever waits.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

# Whole before any thread starts: plotly looks for a pandas that another thread may have half imported.
import pandas  # noqa: F401

from perfkit import fields
from perfkit.clock import NS_PER_S, REAL_CLOCK
from perfkit.errors import ConfigError, PerfkitError, TargetFailed
from perfkit.measuring.experiment import RUNS_FOLDER, Run, measure
from perfkit.measuring.load.loops import Load
from perfkit.measuring.phase import Progress
from perfkit.measuring.service import Service, launch
from perfkit.serving.server.defaults import settings_for
from perfkit.settings.server import ServerSettings

_DYING_NS = NS_PER_S // 5
STARTING, RUNNING, STOPPING = "starting the service", "running", "stopping"


class Screen(Protocol):
    """Where a session shows what happens. Called from its threads."""

    def show_state(self, state: str) -> None:
        """What is going on now: one of the states above; "" = nothing."""

    def show_progress(self, progress: Progress) -> None:
        """The run goes on."""

    def show_run(self, run: Run) -> None:
        """The run has ended and is archived."""

    def show_error(self, text: str) -> None:
        """Something went wrong; the run, if one went on, is over."""


class Session:
    """A service and the runs on it. Thread-safe."""

    def __init__(self, model: str, screen: Screen, out: Path | None = None) -> None:
        self.model = model
        self.service: Service | None = None
        self._screen = screen
        self._out = out or RUNS_FOLDER
        self._changes: dict[str, Any] = {}
        self._lock = threading.Lock()  # guards _changes, service, _thread, _is_running
        self._thread: threading.Thread | None = None
        self._is_running = False
        self._stop = threading.Event()
        self._outcome: Run | None = None
        self._error: Exception | None = None

    @property
    def settings(self) -> ServerSettings:
        """What the service runs with, or will; raises ConfigError for settings that contradict each other."""
        return settings_for(self.model, self._changes)

    def configure(self, changes: Mapping[str, Any]) -> None:
        """Change settings (dotted names): at once when the service runs, else when it starts.

        What the service refuses goes to the screen.
        """
        with self._lock:
            self._changes.update(changes)
            service = self.service
        try:
            if service is not None:
                service.configure(dict(changes))
        except PerfkitError as error:
            self._screen.show_error(_reason(service, error))

    def start(self, load: Load, seconds: float) -> None:
        """Begin a run; raises ConfigError while another goes on."""
        with self._lock:
            if self._is_running:
                raise ConfigError("a run is going on; stop it, or wait until it has ended")
            self._is_running = True
            self._stop.clear()
            self._outcome = self._error = None
            self._thread = threading.Thread(
                target=self._run, args=(load, seconds), name="perfkit-notebook-run", daemon=True
            )
            self._screen.show_state(STARTING)
            self._thread.start()

    def stop(self) -> None:
        """End the load early; what was measured is archived. Without a run nothing happens."""
        with self._lock:
            if self._is_running:
                self._stop.set()
                self._screen.show_state(STOPPING)

    def wait(self) -> Run:
        """The run, once it has ended; raises what it ended with."""
        if self._thread is None:
            raise ConfigError("no run was started; press Start or call start()")
        self._thread.join()
        if self._error is not None:
            raise self._error
        assert self._outcome is not None
        return self._outcome

    def close(self) -> None:
        """Stop a run that goes on, and end the service; the next start launches a new one."""
        self.stop()
        if self._thread is not None:
            self._thread.join()
        with self._lock:
            service, self.service = self.service, None
        if service is not None:
            service.close()

    def _run(self, load: Load, seconds: float) -> None:
        try:
            service = self._live_service()
            if not self._stop.is_set():
                self._screen.show_state(RUNNING)
            self._outcome = measure(service, load, seconds, self._out, self._watch)
            self._screen.show_run(self._outcome)
        except Exception as error:  # told on the screen, and raised again in wait()
            self._error = error
            self._screen.show_error(_reason(self.service, error))
        finally:
            with self._lock:
                self._is_running = False
                self._screen.show_state("")

    def _live_service(self) -> Service:
        """The service at the wanted settings. Only the run's thread launches one, and never under the lock."""
        service = self.service
        if service is None or _has_died(service):
            service = launch(self.settings)
        with self._lock:
            self.service = service
        present = service.settings
        if present is not None and (changes := fields.changes(present, self.settings)):
            service.configure(changes)
        return service

    def _watch(self, progress: Progress) -> bool:
        self._screen.show_progress(progress)
        # A generator that has not opened its file yet does not know how to end in order.
        return self._stop.is_set() and all(path.exists() for path in progress.samples)


def _has_died(service: Service) -> bool:
    try:
        service.check_alive()
    except TargetFailed:
        return True
    return False


def _reason(service: Service | None, error: Exception) -> str:
    """What went wrong, in words; the death of the service is the reason behind whatever it caused."""
    if service is not None and isinstance(error, TargetFailed):
        # A dying process closes its sockets a moment before it can be seen to have ended.
        REAL_CLOCK.sleep_until(REAL_CLOCK.now_ns() + _DYING_NS)
        try:
            service.check_alive()
        except TargetFailed as death:
            return str(death)
    return str(error) if isinstance(error, PerfkitError) else f"{type(error).__name__}: {error}"
