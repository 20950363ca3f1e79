"""How does the server start a child that works for it, and speak to it?

The child ends with the server, however that ends. One socket pair is all that they share; when either
side ends, the other reads the end of it at once.
"""

from __future__ import annotations

import dataclasses
import json
import os
import resource
import signal
import subprocess
import sys
import threading
from multiprocessing.connection import Connection, Pipe
from typing import Any

from perfkit import children, fields
from perfkit.clock import NS_PER_S, process_cpu_ns_of
from perfkit.errors import TargetFailed
from perfkit.settings.server import ServerSettings

_ENTRY = "perfkit.serving.server.elsewhere.process"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ChildSpec:
    """What a child loads, and how it runs."""

    settings: ServerSettings
    intra_op_threads: int
    warm_up_sizes: tuple[int, ...] = ()  # of the batches that it will see; none = it runs no batches, only the stages
    cpus: tuple[int, ...] | None = None  # None = those of its parent


def read_spec(text: str) -> ChildSpec:
    """A spec from the JSON that a child is started with."""
    values = json.loads(text)
    return ChildSpec(
        settings=fields.from_nested(ServerSettings, values["settings"]),
        intra_op_threads=values["intra_op_threads"],
        warm_up_sizes=tuple(values["warm_up_sizes"]),
        cpus=None if values["cpus"] is None else tuple(values["cpus"]),
    )


def _write_spec(spec: ChildSpec) -> str:
    values = {item.name: getattr(spec, item.name) for item in dataclasses.fields(spec)}
    return json.dumps(values | {"settings": fields.to_nested(spec.settings)})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """What a child says of itself once it is ready: read back inside it, not what was asked for."""

    pid: int
    effective_threads: int
    cpus: tuple[int, ...]


_lock = threading.Lock()  # guards _running, and that a child is counted there or among the ended
_running: set[int] = set()


def children_cpu_ns() -> int:
    """CPU time of all children that this process ever had."""
    with _lock:
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        return round((ended.ru_utime + ended.ru_stime) * NS_PER_S) + sum(map(process_cpu_ns_of, _running))


class ChildDied(Exception):
    """The child ended, or none could be started, while somebody needed it. The text is for the client."""


class Child:
    """One running child. One thread asks; any thread may end it."""

    def __init__(self, spec: ChildSpec) -> None:
        ours, theirs = Pipe()
        words = [_write_spec(spec), str(theirs.fileno())]
        try:
            self._process = children.spawn(
                [sys.executable, "-P", "-m", _ENTRY, *words],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=2,  # stdout belongs to the server's ready line
                env=children.same_imports(),
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()  # else the end of the child would not end the stream
        self.pid = self._process.pid
        with _lock:
            _running.add(self.pid)
        self._pipe: Connection[Any, Any] = ours

    def greet(self) -> Hello:
        """Wait until the child has loaded its model; raises TargetFailed with the reason why it cannot."""
        try:
            said = json.loads(self._pipe.recv_bytes())
        except (EOFError, OSError):
            code = self.wait()
            raise TargetFailed(f"a child process ended with {code} before it was ready; the log says why") from None
        if "error" in said:
            self.wait()
            raise TargetFailed(said["error"])
        return Hello(pid=self.pid, effective_threads=said["effective_threads"], cpus=tuple(said["cpus"]))

    def ask(self, message: bytes) -> bytes:
        """Send a call and wait for its reply.

        Raises ConnectionError when the child ended without having read the call (Linux resets a stream with unread
        data), EOFError or another OSError when it ended with it.
        """
        self._pipe.send_bytes(message)
        return self._pipe.recv_bytes()

    def wait(self) -> int:
        """Wait for the child's end; its exit code."""
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        with _lock:
            _running.discard(self.pid)
            return self._process.wait()

    def hang_up(self) -> None:
        """Close our end: an idle child leaves. Nobody may be asking."""
        self._pipe.close()

    def kill(self) -> None:
        """End the child at once, unless it has ended: its number may be somebody else's by then."""
        with _lock:
            if self.pid in _running:
                os.kill(self.pid, signal.SIGKILL)
