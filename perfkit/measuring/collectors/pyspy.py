"""Where in the code are the threads of a running Python process? py-spy looks, from outside.

Three kinds of recording, each a process of its own and never mixed: `default` (threads that run),
`idle` (every thread, so wall-clock time) and `gil` (only the one that holds the GIL). py-spy reads
without stopping the target (`--nonblocking`), at the price of some samples that fail; how many, and
the CPU that py-spy used, is part of the recording.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from perfkit.clock import REAL_CLOCK, Clock
from perfkit.errors import CollectorUnavailable, ConfigError
from perfkit.measuring.collectors.collector import Recording, Target
from perfkit.measuring.collectors.proc import read_text
from perfkit.measuring.collectors.pyspy_session import PySpySession
from perfkit.measuring.collectors.stacks import Circumstances, error_ratio, from_chrometrace, from_speedscope
from perfkit.units import format_duration, format_percent

MODES = ("default", "idle", "gil")
DEFAULT_RATE_HZ = 100
_FORMATS = {"default": "speedscope", "idle": "chrometrace", "gil": "speedscope"}  # why: see stacks.py
_FLAGS: dict[str, list[str]] = {"default": [], "idle": ["--idle"], "gil": ["--gil"]}


def find_pyspy() -> str:
    """The py-spy beside this interpreter, else the first on PATH; raises CollectorUnavailable."""
    beside = Path(sys.executable).with_name("py-spy")
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which("py-spy")
    if found is None:
        raise CollectorUnavailable(
            f"py-spy is neither beside {sys.executable} nor on PATH; install it with: pip install py-spy"
        )
    return found


def explain_failure(output: str, pid: int, root: Path = Path("/")) -> str:
    """What py-spy's last words mean, and what to do about it."""
    if re.search("permission denied", output, re.IGNORECASE):
        scope = (read_text(root / "proc/sys/kernel/yama/ptrace_scope") or "").strip()
        reason = f" (kernel.yama.ptrace_scope is {scope})" if scope else ""
        return (
            f"py-spy may not read process {pid}: permission denied{reason}; run perfkit as root or as the owner "
            "of the process with ptrace_scope 0, or give the container the capability SYS_PTRACE"
        )
    if "Failed to get process executable name" in output:
        return f"process {pid} is not running; give the id of a live process"
    if "Failed to find python version" in output:
        return f"process {pid} is no Python interpreter that py-spy can read; give the id of the Python process itself"
    errors = [line for line in output.splitlines() if line.startswith("Error: ")]
    said = errors[0].removeprefix("Error: ") if errors else "no message"
    return f"py-spy could not watch process {pid}: {said}; try `py-spy dump --pid {pid}` to see why"


class PySpy:
    """Collector of one kind of stacks, stored as stacks/<mode>.json in the target's folder. Used by one thread."""

    def __init__(self, mode: str = "default", rate_hz: int = DEFAULT_RATE_HZ, clock: Clock = REAL_CLOCK) -> None:
        if mode not in MODES:
            raise ConfigError(f"mode is {mode!r}; it takes one of {', '.join(MODES)}")
        self.name = f"pyspy-{mode}"
        self._mode = mode
        self._rate_hz = rate_hz
        self._clock = clock
        self._session: PySpySession | None = None
        self._raw = Path()

    def start(self, target: Target) -> None:
        """Returns once py-spy is sampling; raises CollectorUnavailable with the remedy."""
        folder = target.folder / "stacks"
        folder.mkdir(parents=True, exist_ok=True)
        self._raw = folder / f"{self._mode}.pyspy"
        command = [find_pyspy(), "record", "--pid", str(target.pid), "--output", str(self._raw), "--threads"]
        command += [
            "--nonblocking",
            "--rate",
            str(self._rate_hz),
            "--format",
            _FORMATS[self._mode],
            *_FLAGS[self._mode],
        ]
        session = PySpySession(command, target.pid, self._clock)
        if not session.attach():
            raise CollectorUnavailable(explain_failure(session.output, target.pid))
        self._session = session

    def wait(self, seconds: float) -> None:
        """Let it record for a while; returns early when the target ends."""
        self._running().wait(seconds)

    def stop(self) -> Recording:
        """The stored stacks; `missing` says why there are none."""
        session, self._session = self._running(), None
        circumstances = session.finish(self._mode, self._rate_hz)
        if circumstances is None:
            return self._empty(f"py-spy ended without a recording; it said: {session.output.strip() or 'nothing'}")
        try:
            stacks = _read_raw(self._raw, circumstances)
        except (OSError, ValueError, KeyError, IndexError) as error:
            return self._empty(f"cannot read what py-spy wrote ({error!r}); use py-spy 0.4.3")
        path = self._raw.with_suffix(".json")
        _store(path, stacks)
        self._raw.unlink()
        notes = _remarks(stacks, has_ended_early=circumstances.stopped_ns is None)
        return Recording(name=self.name, series=[], files=(path,), notes=notes)

    def _running(self) -> PySpySession:
        if self._session is None:
            raise RuntimeError("wait() or stop() without start()")
        return self._session

    def _empty(self, missing: str) -> Recording:
        return Recording(name=self.name, series=[], files=(), notes=(), missing=missing)


def record_stacks(pid: int, seconds: float, mode: str, rate_hz: int, folder: Path) -> Path:
    """Record one kind of stacks for a while and return its file; raises CollectorUnavailable with the remedy.

    For use as a library, on any Python process; `perfkit profile` records a service under load.
    """
    collector = PySpy(mode, rate_hz)
    collector.start(Target(pid=pid, folder=folder))
    try:
        collector.wait(seconds)
    finally:
        recording = collector.stop()
    if recording.missing is not None:
        raise CollectorUnavailable(recording.missing)
    return recording.files[0]


def _read_raw(raw: Path, circumstances: Circumstances) -> dict[str, Any]:
    content = json.loads(raw.read_bytes())
    if _FORMATS[circumstances.mode] == "chrometrace":
        return from_chrometrace(content, circumstances)
    return from_speedscope(content, circumstances)


def _store(path: Path, stacks: dict[str, Any]) -> None:
    """Under a temporary name first, so that no reader ever meets half a file."""
    temporary = path.with_suffix(".part")
    temporary.write_text(json.dumps(stacks, separators=(",", ":")), "utf-8")
    temporary.replace(path)


def _remarks(stacks: dict[str, Any], has_ended_early: bool) -> tuple[str, ...]:
    failed, cpu_s = format_percent(error_ratio(stacks)), format_duration(stacks["profiler_cpu_s"])
    notes = [f"py-spy used {cpu_s} of CPU in {format_duration(stacks['seconds'])}; {failed} of its looks failed"]
    if has_ended_early:
        notes.append("the target ended before the recording did")
    return tuple(notes)
