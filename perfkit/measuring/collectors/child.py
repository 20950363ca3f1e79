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
from typing import NamedTuple

from perfkit import children
from perfkit.clock import NS_PER_S
from perfkit.errors import ArchiveError, CollectorUnavailable
from perfkit.measuring.collectors.collector import SeriesRow
from perfkit.measuring.collectors.process import find_start
from perfkit.measuring.collectors.sampling import READY
from perfkit.measuring.collectors.series import read_series
from perfkit.units import format_duration, format_number

DEFAULT_RATE_HZ = 5.0
DEFAULT_NICENESS = -5
_START_S = 20.0  # an interpreter start on a machine whose cores are all taken


def start_child(module: str, spec_file: Path) -> subprocess.Popen[bytes]:
    """Run a module on a spec; returns once its first instant is on disk. Raises CollectorUnavailable.

    A child that ends with the exit code of CollectorUnavailable has said why in its last line.
    """
    command = [sys.executable, "-P", "-m", module, str(spec_file)]
    log = spec_file.with_name(f"{spec_file.name.partition('.')[0]}.log")
    with log.open("wb") as errors:
        child = children.spawn(command, stdout=subprocess.PIPE, stderr=errors, env=children.same_perfkit())
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


class Left(NamedTuple):
    """What a child has written, why that is not all of it, and whether the process that it watched still runs."""

    rows: list[SeriesRow]
    missing: str | None
    is_target_alive: bool


def stop_child(child: subprocess.Popen[bytes], series: Path, target_pid: int) -> Left:
    """End a child; it may have ended early, which is no fault when its target had ended before."""
    has_ended_early = child.poll() is not None
    code = children.stop(child)
    is_target_alive = find_start(target_pid) is not None
    try:
        rows = read_series(series)
    except ArchiveError as error:
        return Left([], str(error), is_target_alive)
    cut = f"the sampler ended early with exit code {code}; rows end there"
    return Left(rows, cut if has_ended_early and is_target_alive else None, is_target_alive)


def describe_cost(rows: list[SeriesRow], source: str) -> list[str]:
    """The sampler's own CPU between its first and its last reading; starting up is not part of it."""
    own = [row for row in rows if row.source == source and row.name == "cpu"]
    if len(own) < 2:
        return []
    cpu_s = own[-1].value - own[0].value
    wall_s = (own[-1].time_ns - own[0].time_ns) / NS_PER_S
    return [f"sampler used {format_duration(cpu_s)} of CPU in {format_duration(wall_s)}"]
