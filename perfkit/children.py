"""How does perfkit start a process that can never outlive it, even when it is killed?

Linux sends a parent-death signal when the *thread* that forked ends. So every child is forked by
one thread that lives as long as the process (a notebook cell's thread would take the server with
it), through this file run as a script: it arms the signal in the child, then becomes the command.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from concurrent.futures import Future
from typing import Any

_PR_SET_PDEATHSIG = 1
_inbox: queue.SimpleQueue[tuple[list[str], dict[str, Any], Future[subprocess.Popen[bytes]]]] = queue.SimpleQueue()
_start_lock = threading.Lock()  # guards _spawner
_spawner: threading.Thread | None = None


def spawn(command: list[str], **popen: Any) -> subprocess.Popen[bytes]:
    """Start a command as a child that is killed when this process ends, however it ends.

    Takes subprocess.Popen's keywords; the pid is the command's own. The child has a process group of its
    own: Ctrl-C, or a notebook's interrupt, goes to a whole group and must not end the service. (Not a
    session of its own: Linux shares the cores out by session first, and niceness would count for nothing.)
    Raises what Popen raises.
    """
    _ensure_spawner()
    started: Future[subprocess.Popen[bytes]] = Future()
    guarded = [sys.executable, "-I", "-S", os.path.abspath(__file__), str(os.getpid()), *command]
    _inbox.put((guarded, {"process_group": 0, **popen}, started))
    return started.result()


def _ensure_spawner() -> None:
    global _spawner
    with _start_lock:
        # A fork of this process inherits the variable but not the thread.
        if _spawner is None or not _spawner.is_alive():
            _spawner = threading.Thread(target=_spawn_forever, name="perfkit-spawner", daemon=True)
            _spawner.start()


def _spawn_forever() -> None:
    while True:
        command, popen, started = _inbox.get()
        try:
            started.set_result(subprocess.Popen(command, **popen))
        except BaseException as error:  # the caller's thread re-raises it
            started.set_exception(error)


def same_perfkit() -> dict[str, str]:
    """The environment in which a child finds this perfkit, also one that is on our path and not installed."""
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return _with_path([home, os.environ.get("PYTHONPATH", "")])


def same_imports() -> dict[str, str]:
    """The environment in which a child can import all that this process can, and what lies in the working folder.

    The latter shadows nothing.
    """
    return _with_path([*sys.path, os.getcwd()])


def _with_path(places: list[str]) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, places))}


def stop(child: subprocess.Popen[bytes], grace_s: float = 5.0) -> int:
    """Ask a child to end (SIGTERM), then kill it; returns its exit code. Safe to call twice."""
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(grace_s)
        except subprocess.TimeoutExpired:
            child.kill()
    return child.wait()


def _become(parent: int, command: list[str]) -> None:
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # the parent died before the signal was armed
        os._exit(1)
    os.execvp(command[0], command)


if __name__ == "__main__":
    _become(int(sys.argv[1]), sys.argv[2:])
