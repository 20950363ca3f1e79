"""How does one py-spy process live: attach, sample, write, end, and what did it cost?"""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import threading
from pathlib import Path

from perfkit import children
from perfkit.clock import NS_PER_S, Clock
from perfkit.measuring.collectors.proc import list_threads, parse_stat, read_text
from perfkit.measuring.collectors.stacks import Circumstances

_ATTACH_S = 20.0  # py-spy itself tries for about 2 s; the rest is for a machine whose cores are all taken
_WRITE_S = 60.0
_SAMPLING = "Sampling process"
_SUMMARY = re.compile(r"Samples: (\d+) Errors: (\d+)")


class PySpySession:
    """One py-spy process, and the thread that reads what it says. Used by one thread."""

    def __init__(self, command: list[str], pid: int, clock: Clock) -> None:
        self._command = command
        self._pid = pid
        self._clock = clock
        self._lines: list[str] = []  # the reader thread writes these three, and then sets _is_settled
        self._attached_ns: int | None = None
        self._summed_up_ns: int | None = None
        self._is_settled = threading.Event()  # it samples, or it has ended

    def attach(self) -> bool:
        """Start it; whether it is sampling now. If not, it has ended, and `output` says why."""
        self._child = children.spawn(self._command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self._reader = threading.Thread(target=self._read, name="perfkit-pyspy-output", daemon=True)
        self._reader.start()
        self._is_settled.wait(_ATTACH_S)
        self._cpu_at_attach_s = self._cpu_s()
        if self._attached_ns is None:
            self._reap()
        return self._attached_ns is not None

    def _read(self) -> None:
        assert self._child.stdout is not None
        with self._child.stdout as pipe:
            for raw_line in pipe:
                line = raw_line.decode("utf-8", "replace").rstrip()
                self._lines.append(line)
                if _SAMPLING in line:
                    self._attached_ns = self._clock.now_ns()
                    self._is_settled.set()
                elif _SUMMARY.search(line):
                    self._summed_up_ns = self._clock.now_ns()
        self._is_settled.set()

    @property
    def output(self) -> str:
        """Everything it has said so far."""
        return "\n".join(self._lines)

    def wait(self, seconds: float) -> bool:
        """Whether it ended within that time; it stays unreaped, so that its CPU time can still be read."""
        handle = os.pidfd_open(self._child.pid)
        try:
            return bool(select.select([handle], [], [], seconds)[0])
        finally:
            os.close(handle)

    def finish(self, mode: str, rate_hz: int) -> Circumstances | None:
        """Stop sampling, wait for the file, reap the process. None = it wrote no recording."""
        live = list_threads(self._pid)
        stopped_ns = None if self.wait(0) else self._clock.now_ns()
        if stopped_ns is not None:
            self._child.send_signal(signal.SIGINT)
            self.wait(_WRITE_S)
        cpu_s = self._cpu_s()
        self._reap()
        summary = _SUMMARY.search(self.output)
        if summary is None or self._attached_ns is None or self._summed_up_ns is None:
            return None
        return Circumstances(
            mode=mode,
            rate_hz=rate_hz,
            seconds=((stopped_ns or self._summed_up_ns) - self._attached_ns) / NS_PER_S,
            sample_count=int(summary[1]),
            error_count=int(summary[2]),
            profiler_cpu_s=None if cpu_s is None or self._cpu_at_attach_s is None else cpu_s - self._cpu_at_attach_s,
            attached_ns=self._attached_ns,
            stopped_ns=stopped_ns,
            live_threads=frozenset(live) or None,
        )

    def _reap(self) -> None:
        children.stop(self._child)
        self._reader.join()

    def _cpu_s(self) -> float | None:
        stat = parse_stat(read_text(Path("/proc") / str(self._child.pid) / "stat") or "")
        return None if stat is None else (stat.user_ns + stat.system_ns) / NS_PER_S
