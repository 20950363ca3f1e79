"""How is a sampler started as a process of its own, and what did it leave behind?

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
from perfkit.measuring.collectors.collector import SeriesRow
from perfkit.measuring.collectors.sampling import READY
from perfkit.measuring.collectors.series import read_series
from perfkit.units import format_duration, format_number

DEFAULT_RATE_HZ = 5.0
DEFAULT_NICENESS = -5
_START_S = 20.0  # an interpreter start on a machine whose cores are all taken
_PACKAGE_ROOT = Path(__file__).resolve().parents[3]


def start_child(module: str, spec_file: Path) -> subprocess.Popen[bytes]:
    """Run a module on a spec; returns once its first instant is on disk. Raises CollectorUnavailable.

    A child that ends with the exit code of CollectorUnavailable has said why in its last line.
    """
    command = [sys.executable, "-P", "-m", module, str(spec_file)]
    log = spec_file.with_name(f"{spec_file.name.partition('.')[0]}.log")
    with log.open("wb") as errors:
        # A checkout that is on our path, but not installed, must be on the child's path too.
        places = [str(_PACKAGE_ROOT), os.environ.get("PYTHONPATH", "")]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, places))}
        child = children.spawn(command, stdout=subprocess.PIPE, stderr=errors, env=environment)
    is_ready = _await_ready(child)
    if is_ready:
        return child
    code = children.stop(child)
    lines = log.read_text("utf-8", "replace").strip().splitlines()
    raise CollectorUnavailable(_describe_failure(is_ready, code, lines[-1] if lines else "", log))


def _await_ready(child: subprocess.Popen[bytes]) -> bool | None:
    """Whether the child says that it is up; None when it says nothing for too long."""
    assert child.stdout is not None
    with child.stdout as pipe:
        can_read, _, _ = select.select([pipe], [], [], _START_S)
        return pipe.read() == READY if can_read else None


def _describe_failure(is_ready: bool | None, code: int, last_line: str, log: Path) -> str:
    if is_ready is None:
        return f"the sampler process gave no sign of life within {format_duration(_START_S)} and was ended"
    if code == CollectorUnavailable.exit_code and last_line:
        return last_line
    if code < 0:
        return f"the sampler process ended with signal {-code} before its first look"
    return f"the sampler process did not start ({last_line or 'no message'}); see {log}, then try again"


def describe_pace(child: subprocess.Popen[bytes], rate_hz: float, niceness: int) -> list[str]:
    """How often a running child reads, and at which niceness."""
    effective = os.getpriority(os.PRIO_PROCESS, child.pid)
    notes = [f"sampler reads {format_number(rate_hz)} times a second at niceness {effective}"]
    if effective > niceness:
        notes.append(f"niceness {niceness} is not allowed here (it needs CAP_SYS_NICE)")
    return notes


def read_back(path: Path) -> tuple[list[SeriesRow], str | None]:
    """The rows that a child has written, and why there are none."""
    try:
        return read_series(path), None
    except ArchiveError as error:
        return [], str(error)


def describe_cost(rows: list[SeriesRow], source: str) -> list[str]:
    """The sampler's own CPU between its first and its last reading; starting up is not part of it."""
    own = [row for row in rows if row.source == source and row.name == "cpu"]
    if len(own) < 2:
        return []
    cpu_s = own[-1].value - own[0].value
    wall_s = (own[-1].time_ns - own[0].time_ns) / NS_PER_S
    return [f"sampler used {format_duration(cpu_s)} of CPU in {format_duration(wall_s)}"]
