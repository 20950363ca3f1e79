"""How are per-thread and system counters recorded beside a run? By one sampler process of its own.

A process of its own, so that neither the service's GIL nor the notebook's is part of the reading,
and at a higher priority where that is allowed, so that a busy machine does not thin the series.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path

from perfkit import children
from perfkit.clock import NS_PER_S
from perfkit.errors import ArchiveError, CollectorUnavailable
from perfkit.measuring.collectors.collector import Recording, SeriesRow, Target
from perfkit.measuring.collectors.process import READY, Spec, find_start
from perfkit.measuring.collectors.series import read_series
from perfkit.units import format_duration, format_number

DEFAULT_RATE_HZ = 5.0
DEFAULT_NICENESS = -5
_START_S = 20.0  # an interpreter start on a machine whose cores are all taken
_PACKAGE_ROOT = Path(__file__).resolve().parents[3]


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
        self._target, self._child = target, _start_child(spec_file)
        effective = os.getpriority(os.PRIO_PROCESS, self._child.pid)
        self._notes = [f"sampler reads {format_number(self._rate_hz)} times a second at niceness {effective}"]
        if effective > self._niceness:
            self._notes.append(f"niceness {self._niceness} is not allowed here (it needs CAP_SYS_NICE)")

    def stop(self) -> Recording:
        """The rows of everything that was read; `missing` says why when the sampler ended early."""
        if self._child is None or self._target is None:
            raise RuntimeError("stop() without start()")
        has_ended_early = self._child.poll() is not None
        code = children.stop(self._child)
        path = _series_file(self._target)
        rows, missing = _read(path)
        is_target_alive = find_start(self._target.pid) is not None
        if missing is None and has_ended_early and is_target_alive:
            missing = f"the sampler ended early with exit code {code}; rows end there"
        notes = (*self._notes, *_cost(rows), *(() if is_target_alive else ("the target ended first",)))
        return Recording(name=self.name, series=rows, files=(path,), notes=notes, missing=missing)

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


def _start_child(spec_file: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-m", "perfkit.measuring.collectors.process", str(spec_file)]
    log = spec_file.with_name("system.log")
    with log.open("wb") as errors:
        # A checkout that is on our path, but not installed, must be on the child's path too.
        places = [str(_PACKAGE_ROOT), os.environ.get("PYTHONPATH", "")]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, places))}
        child = children.spawn(command, stdout=subprocess.PIPE, stderr=errors, env=environment)
    if _is_ready(child):
        return child
    children.stop(child)
    lines = log.read_text("utf-8", "replace").strip().splitlines()
    raise CollectorUnavailable(
        f"the sampler process did not start ({lines[-1] if lines else 'no message'}); see {log}, then try again"
    )


def _is_ready(child: subprocess.Popen[bytes]) -> bool:
    assert child.stdout is not None
    with child.stdout as pipe:
        can_read, _, _ = select.select([pipe], [], [], _START_S)
        return bool(can_read) and pipe.read() == READY


def _read(path: Path) -> tuple[list[SeriesRow], str | None]:
    try:
        return read_series(path), None
    except ArchiveError as error:
        return [], str(error)


def _cost(rows: list[SeriesRow]) -> list[str]:
    """The sampler's own CPU between its first and its last reading; starting up is not part of it."""
    own = [row for row in rows if row.source == "sampler" and row.name == "cpu"]
    if len(own) < 2:
        return []
    cpu_s = own[-1].value - own[0].value
    wall_s = (own[-1].time_ns - own[0].time_ns) / NS_PER_S
    return [f"sampler used {format_duration(cpu_s)} of CPU in {format_duration(wall_s)}"]
