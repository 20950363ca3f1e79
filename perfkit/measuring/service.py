"""What is measured? A service: one that perfkit launches, or anybody's that already runs."""

from __future__ import annotations

import dataclasses
import io
import json
import queue
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
from perfkit.settings import ServerSettings

_START_TIMEOUT_S = 120.0
_STOP_GRACE_S = 25.0
_KINDS: dict[int, type[PerfkitError]] = {2: ConfigError, 3: EnvironmentLacks}


class Service:
    """A running service: its address, and its control port and process when perfkit launched it.

    Use it in a `with` block; a launched service ends with the block, and with the process that
    launched it in any case.
    """

    def __init__(self, url: str, control_url: str | None = None, child: Child | None = None) -> None:
        self.url = url.rstrip("/")
        self.endpoint = Endpoint(url)
        self.control = Endpoint(control_url) if control_url else None
        self._child = child

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
        """Process id of a launched service."""
        return self._child.process.pid if self._child else None

    @property
    def predict_url(self) -> str:
        """Where requests go: the given URL when it has a path, else `/predict` of it."""
        return self.url if urlsplit(self.url).path else f"{self.url}/predict"

    @property
    def placement(self) -> Placement:
        """Which cores the measurement's processes use."""
        settings = self.settings
        return self._child.placement if self._child else place(settings.model if settings else "")

    @property
    def settings(self) -> ServerSettings | None:
        """The present settings; None for a service that is not perfkit's own."""
        if self.control is None:
            return None
        return fields.from_nested(ServerSettings, self.control.get("/settings"))

    @property
    def log(self) -> Path | None:
        """Where a launched service writes its log."""
        return self._child.log if self._child else None

    def stats(self) -> dict[str, Any] | None:
        """Counters and gauges at this instant; None for a service that has none."""
        if self.control is None:
            return None
        stats: dict[str, Any] = self.control.get("/stats")
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
            raise TargetFailed(f"the service ended with exit code {code}: {self._child.last_line()}")

    def close(self) -> None:
        """Drain and end a launched service; an attached one is left alone."""
        if self._child is not None:
            children.stop(self._child.process, _STOP_GRACE_S)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """A launched server process, its log, and where it runs."""

    process: subprocess.Popen[bytes]
    log: Path
    placement: Placement

    def last_line(self) -> str:
        """The last line of the log, for error messages."""
        lines = self.log.read_text("utf-8", "replace").strip().splitlines()
        return lines[-1].removeprefix("perfkit: ") if lines else "it wrote no log"


def launch(settings: ServerSettings | None = None, **changes: Any) -> Service:
    """Start the reference server as a child process and wait until it is ready.

    `changes` are settings by name, nested ones as a dict: `launch(model="minilm", workers=4,
    batch={"max_size": 8})`. Raises ConfigError, EnvironmentLacks or TargetFailed with the reason.
    """
    settings = settings or settings_for(changes.pop("model", "minilm"), fields.flatten(changes))
    placement = place(settings.model)
    spec = {"settings": fields.to_nested(settings), "cpus": placement.server_cpus}
    log = Path(tempfile.mkdtemp(prefix="perfkit-")) / "server.log"
    with log.open("wb") as stream:
        process = children.spawn(
            [sys.executable, "-m", "perfkit.serving.server.process", json.dumps(spec)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stream,
        )
    child = Child(process=process, log=log, placement=placement)
    ready = _await_ready(child)
    return Service(ready["url"], ready["control_url"], child)


def attach(url: str) -> Service:
    """A service that already runs, by its URL, perfkit's own or anybody's; raises TargetFailed when nothing answers."""
    service = Service(url)
    service.endpoint.probe()
    return service


def _await_ready(child: Child) -> dict[str, Any]:
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    stdout = child.process.stdout
    assert stdout is not None
    # A reader thread, because a pipe's readline takes no time-out.
    threading.Thread(target=lambda: lines.put(stdout.readline()), name="perfkit-ready", daemon=True).start()
    try:
        line = lines.get(timeout=_START_TIMEOUT_S)
    except queue.Empty:
        child.process.kill()
        raise TargetFailed(f"the service was not ready within {_START_TIMEOUT_S:g} s: {child.last_line()}") from None
    except BaseException:  # interrupted while starting: leave no process behind
        child.process.kill()
        raise
    if not line:
        code = child.process.wait()
        raise _KINDS.get(code, TargetFailed)(child.last_line())
    ready: dict[str, Any] = json.loads(line)
    return ready
