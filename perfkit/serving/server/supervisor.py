"""Who starts the server again when its device is lost for good? A small parent that holds its sockets.

The parent opens the listening sockets and hands them to the server, its only child. A server that ends
with a lost device (exit code 70) is started again on the same sockets and with the settings it had last:
clients that connect meanwhile wait. Any other end is the parent's end too, in the same way. SIGTERM and
SIGINT are passed on. Neither outlives the other, and the parent imports nothing that serves or computes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator

from perfkit import children
from perfkit.clock import NS_PER_S, REAL_CLOCK
from perfkit.errors import PerfkitError
from perfkit.serving.devices.device import DeviceLost
from perfkit.serving.scheduling.restarts import LOOP_DEATHS, WINDOW_NS, Restarts
from perfkit.serving.server.listener import check_exposure, listen
from perfkit.serving.server.spec import ServerSpec, read_shared_spec, read_spec, rewrite_spec, share_spec

_SERVER = [sys.executable, "-P", "-m", "perfkit.serving.server.process"]
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_INTERRUPTED = 130


def supervise(spec: ServerSpec) -> int:
    """Serve until the server has ended for good; returns its exit code, negative for a signal.

    Raises ConfigError or EnvironmentLacks when it cannot listen. Call it on the main thread.
    """
    check_exposure(spec.host, spec.token)
    with listen(spec.host, spec.port) as service, listen("127.0.0.1", 0) as control:
        return _Supervisor(spec, (service, control)).run()


def end_as(code: int) -> int:
    """End this process as its child ended: by the same signal, or with the exit code that is returned."""
    if code >= 0:
        return code
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the child has left a core where one is wanted
    with contextlib.suppress(OSError):  # SIGKILL takes no disposition
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
    return 128 - code


class _Supervisor:
    """One child at a time, and what may come between two. For the main thread, which gets the signals."""

    def __init__(self, spec: ServerSpec, listeners: tuple[socket.socket, socket.socket]) -> None:
        self._listener_fds = (listeners[0].fileno(), listeners[1].fileno())
        self._spec_fd = share_spec(dataclasses.replace(spec, listener_fds=self._listener_fds))
        self._restarts = Restarts()
        self._child: subprocess.Popen[bytes] | None = None
        self._is_stopping = False

    def run(self) -> int:
        with self._forwarding(), open(self._spec_fd, "rb"):
            while True:
                code = self._serve_once()
                if self._is_stopping and code < 0:  # before it could answer the signal in its own way
                    return _INTERRUPTED
                if code != DeviceLost.exit_code or self._is_stopping or not self._may_restart():
                    return code
                spec = read_shared_spec(self._spec_fd)  # the server has kept its present settings there
                rewrite_spec(self._spec_fd, dataclasses.replace(spec, starts=spec.starts + 1))

    def _serve_once(self) -> int:
        # In the parent's process group, so that a terminal's Ctrl-Z stops both.
        child = children.spawn(
            [*_SERVER, str(self._spec_fd)],
            process_group=None,
            pass_fds=(*self._listener_fds, self._spec_fd),
            stdin=subprocess.DEVNULL,
            env=children.same_imports(),
        )
        self._child = child
        if self._is_stopping:  # the signal came before there was anybody to pass it on to
            child.send_signal(signal.SIGTERM)
        return child.wait()

    def _may_restart(self) -> bool:
        now_ns = REAL_CLOCK.now_ns()
        pause_ns = self._restarts.died(now_ns)
        if self._restarts.is_looping(now_ns):
            seconds = WINDOW_NS // NS_PER_S
            _say(f"perfkit: the device was lost {LOOP_DEATHS} times within {seconds} s; the service is given up")
            return False
        _say("the device is lost; the server is started again")
        REAL_CLOCK.sleep_until(now_ns + pause_ns)
        return not self._is_stopping

    @contextlib.contextmanager
    def _forwarding(self) -> Iterator[None]:
        before = {number: signal.signal(number, self._forward) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _forward(self, number: int, frame: object) -> None:
        self._is_stopping = True
        if self._child is not None:
            self._child.send_signal(number)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(text: str) -> int:
    """Run from a JSON spec; returns the exit code, with one line on stderr when it cannot even start."""
    try:
        return end_as(supervise(read_spec(text)))
    except PerfkitError as error:
        _say(f"perfkit: {error}")
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
