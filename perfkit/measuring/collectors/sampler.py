"""How are per-thread and system counters recorded beside a run? By one sampler process of its own."""

from __future__ import annotations

import subprocess
from pathlib import Path

from perfkit.errors import CollectorUnavailable
from perfkit.measuring.collectors.child import (
    DEFAULT_NICENESS,
    DEFAULT_RATE_HZ,
    describe_cost,
    describe_pace,
    start_child,
    stop_child,
)
from perfkit.measuring.collectors.collector import Recording, Target
from perfkit.measuring.collectors.process import Spec, find_start

_MODULE = "perfkit.measuring.collectors.process"


class SystemSampler:
    """Collector of thread, process, core and host counters. Used by one thread."""

    name = "system"

    def __init__(self, rate_hz: float = DEFAULT_RATE_HZ, niceness: int = DEFAULT_NICENESS) -> None:
        self._rate_hz = rate_hz
        self._niceness = niceness
        self._child: subprocess.Popen[bytes] | None = None
        self._target: Target | None = None
        self._notes: list[str] = []

    def start(self, target: Target) -> None:
        """Returns once the first instant is on disk; raises CollectorUnavailable with the remedy."""
        if find_start(target.pid) is None:
            raise CollectorUnavailable(
                f"process {target.pid} is not running or /proc is not mounted; give the id of a live process on Linux"
            )
        target.folder.mkdir(parents=True, exist_ok=True)
        spec_file = target.folder / "system.spec.json"
        spec_file.write_text(self._spec(target).to_json(), "utf-8")
        self._target, self._child = target, start_child(_MODULE, spec_file)
        self._notes = describe_pace(self._child, self._rate_hz, self._niceness)

    def stop(self) -> Recording:
        """The rows of everything that was read; `missing` says why when the sampler ended early."""
        if self._child is None or self._target is None:
            raise RuntimeError("stop() without start()")
        path = _series_file(self._target)
        left = stop_child(self._child, path, self._target.pid)
        notes = (
            *self._notes,
            *describe_cost(left.rows, "sampler"),
            *(() if left.is_target_alive else ("the target ended first",)),
        )
        return Recording(name=self.name, series=left.rows, files=(path,), notes=notes, missing=left.missing)

    def _spec(self, target: Target) -> Spec:
        return Spec(
            pid=target.pid,
            path=str(_series_file(target)),
            rate_hz=self._rate_hz,
            niceness=self._niceness,
            thread_names=target.thread_names or {},
        )


def _series_file(target: Target) -> Path:
    return target.folder / "system.series"
