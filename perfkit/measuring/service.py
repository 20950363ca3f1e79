"""What is measured? A service: one that perfkit launches, or anybody's that already runs."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from perfkit import children, fields
from perfkit.errors import ConfigError, EnvironmentLacks, PerfkitError, TargetFailed
from perfkit.measuring.control import Endpoint
from perfkit.measuring.placement import Placement, place
from perfkit.serving.server.defaults import settings_for
from perfkit.serving.server.spec import ServerSpec, write_spec
from perfkit.settings.server import ServerSettings

_START_TIMEOUT_S = 120.0
_COMPILING_S = 1800.0  # beyond that, for a start that compiles: minutes on a busy machine, and for each bucket
_LAST_ANSWERS_S = 5.0  # beyond what the settings give a shutdown
_DYING_S = 0.5  # a dying process closes its sockets a moment before it can be seen to have ended
_COMPLAINT = "perfkit: "  # how the server's own errors begin
_KINDS: dict[int, type[PerfkitError]] = {2: ConfigError, 3: EnvironmentLacks}


class Service:
    """A running service: its address, and its control port and process when perfkit launched it.

    Use it in a `with` block; a launched service ends with the block, and with the process that
    launched it in any case.
    """

    def __init__(
        self,
        url: str,
        control_url: str | None = None,
        child: Child | None = None,
        *,
        is_simulated: bool = False,
        pid: int | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        self.is_simulated = is_simulated
        self.endpoint = Endpoint(url)
        self.control = Endpoint(control_url) if control_url else None
        self._child = child
        self._pid = pid

    def __repr__(self) -> str:
        return f"Service({self.url!r}{', launched' if self._child else ''})"

    def __enter__(self) -> Service:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """Process id of a launched service's server at present (another one after it was restarted), or as given."""
        return self._child.ready[-1]["pid"] if self._child else self._pid

    @property
    def predict_url(self) -> str:
        """Where requests go: the given URL when it has a path, else `/predict` of it."""
        return self.url if urlsplit(self.url).path else f"{self.url}/predict"

    @property
    def placement(self) -> Placement:
        """Which cores the measurement's processes use."""
        return self._child.placement if self._child else place("")

    @property
    def settings(self) -> ServerSettings | None:
        """The present settings; None for a service that is not perfkit's own."""
        if self.control is None:
            return None
        return fields.from_nested(ServerSettings, self._ask(self.control, "/settings"))

    @property
    def log(self) -> Path | None:
        """Where a launched service writes its log."""
        return self._child.log if self._child else None

    def stats(self) -> dict[str, Any] | None:
        """Counters and gauges at this instant; None for a service that has none."""
        if self.control is None:
            return None
        stats: dict[str, Any] = self._ask(self.control, "/stats")
        return stats

    def ledger(self, table: str, since: int) -> Any:
        """An Arrow table of the ledger's closed rows from number `since` on; raises TargetFailed."""
        import pyarrow

        if self.control is None:
            raise TargetFailed("this service keeps no ledger; only services launched by perfkit do")
        data = self.control.call("GET", f"/ledger?table={table}&since={since}")
        return pyarrow.ipc.open_stream(io.BytesIO(data)).read_all()

    def configure(self, changes: dict[str, Any]) -> None:
        """Change live settings (dotted names); raises ConfigError for one that needs a restart."""
        if self.control is None:
            raise ConfigError("this service was not launched by perfkit, so its settings cannot be changed from here")
        self.control.send("PATCH", "/settings", changes)

    def check_alive(self) -> None:
        """Raises TargetFailed with the log's last line when a launched service has died."""
        if self._child is not None and (code := self._child.process.poll()) is not None:
            how = f" ({signal.Signals(-code).name})" if code < 0 else ""
            raise TargetFailed(
                f"the service ended with exit code {code}{how}; its last words: {self._child.last_line()}"
            )

    def close(self) -> None:
        """Drain and end a launched service; an attached one is left alone."""
        if self._child is not None:
            children.stop(self._child.process, self._child.stop_grace_s)
            self._child.forget()

    def _ask(self, control: Endpoint, path: str) -> Any:
        try:
            return control.get(path)
        except TargetFailed:
            if self._child is not None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._child.process.wait(_DYING_S)
            self.check_alive()
            raise


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """A launched server: its supervisor's process, its log, where it runs, and its ready lines, one for each start."""

    process: subprocess.Popen[bytes]
    log: Path
    placement: Placement
    stop_grace_s: float
    ready: list[dict[str, Any]] = dataclasses.field(default_factory=list)

    def last_line(self) -> str:
        """What the server said last, for error messages: its own complaint, else the last line of its log."""
        lines = self.log.read_text("utf-8", "replace").strip().splitlines() if self.log.exists() else []
        complaints = [line.removeprefix(_COMPLAINT) for line in lines if line.startswith(_COMPLAINT)]
        return (complaints or lines or ["none"])[-1]

    def forget(self) -> None:
        """Remove the log and its folder; what a run needs of it lies in the archive."""
        shutil.rmtree(self.log.parent, ignore_errors=True)


def launch(settings: ServerSettings | None = None, **changes: Any) -> Service:
    """Start the reference server under its supervisor, as child processes, and wait until it is ready.

    `changes` are settings by name, nested ones as a dict: `launch(model="minilm", workers=4,
    batch={"max_size": 8})`. Raises ConfigError, EnvironmentLacks or TargetFailed with the reason.
    """
    if settings is not None and changes:
        raise ConfigError(f"launch got settings and also {', '.join(changes)}; put the changes into the settings")
    settings = settings or settings_for(changes.pop("model", "minilm"), fields.flatten(changes))
    placement = place(settings.model)
    spec = ServerSpec(settings=settings, cpus=placement.server_cpus)
    log = Path(tempfile.mkdtemp(prefix="perfkit-")) / "server.log"
    with log.open("ab") as stream:
        process = children.spawn(
            [sys.executable, "-P", "-m", "perfkit.serving.server.supervisor", write_spec(spec)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stream,
            env=children.same_imports(),
        )
    stop_grace_s = settings.http.pre_stop_s + settings.http.drain_s + _LAST_ANSWERS_S
    child = Child(process=process, log=log, placement=placement, stop_grace_s=stop_grace_s)
    try:
        ready = _await_ready(child, _START_TIMEOUT_S + (_COMPILING_S if settings.execution.compiles else 0.0))
    except BaseException:  # also when interrupted while starting: leave nothing behind
        process.kill()
        process.wait()
        child.forget()
        raise
    return Service(ready["url"], ready["control_url"], child, is_simulated=settings.is_simulated)


def attach(url: str, pid: int | None = None) -> Service:
    """A service that already runs, by its URL, perfkit's own or anybody's; raises TargetFailed when nothing answers.

    With its process id (on this machine) its threads and counters are recorded, and the commit it runs from.
    """
    endpoint = Endpoint(url)
    endpoint.probe()
    try:
        is_simulated = endpoint.get("/stats")["simulated"] is True  # what perfkit's own server says of itself
    except (PerfkitError, ValueError, LookupError, TypeError):
        is_simulated = False
    return Service(url, is_simulated=is_simulated, pid=pid)


def _await_ready(child: Child, timeout_s: float) -> dict[str, Any]:
    ready: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
    # A reader thread, because a pipe's readline takes no time-out.
    threading.Thread(target=_listen, args=(child, ready), name="perfkit-ready", daemon=True).start()
    try:
        found = ready.get(timeout=timeout_s)
    except queue.Empty:
        raise TargetFailed(
            f"the service was not ready within {timeout_s:g} s; its last words: {child.last_line()}"
        ) from None
    if found is None:
        raise _KINDS.get(child.process.wait(), TargetFailed)(child.last_line())
    return found


def _listen(child: Child, ready: queue.SimpleQueue[dict[str, Any] | None]) -> None:
    """Whatever a model prints goes to the log: it is not the ready line, and must not fill the pipe."""
    assert child.process.stdout is not None
    with child.process.stdout as pipe, child.log.open("ab", buffering=0) as log:
        for line in pipe:
            if (found := _ready_line(line)) is not None:
                child.ready.append(found)
                ready.put(found)
            else:
                log.write(line)
    ready.put(None)


def _ready_line(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) and {"url", "control_url", "pid"} <= set(found) else None
