"""What do the process as a whole, the cores and the host do meanwhile?

Rows of `process`: `user_cpu`, `system_cpu` (s), `minor_faults`, `major_faults`, `read`, `written`
(bytes at the block layer) are counters; `rss` (bytes), `threads`, `open_files` are levels.
A row of `children`: `cpu` (s), a counter, of the processes that it has started.
Rows of `core:<n>`: `busy`, `steal` (s). Rows of `host`, all counters: `softirq_<kind>` (count),
`pressure_<cpu|io|memory>_<some|full>` (s), `disk_read`, `disk_written` (bytes), and of the target's
control group `throttled` (s), `throttled_periods` (count).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from perfkit.clock import NS_PER_S
from perfkit.measuring.collectors import proc
from perfkit.measuring.collectors.cgroups import read_throttling
from perfkit.measuring.collectors.series import Reading

PRESSURES = ("cpu", "io", "memory")
_NOT_HARDWARE = ("loop", "ram", "zram", "dm-", "md")  # files, memory, and stacks on other devices


def read_process(root: Path, pid: int) -> Iterator[Reading]:
    """CPU, memory, faults, threads, files and block traffic of one process."""
    folder = root / "proc" / str(pid)
    stat = proc.parse_stat(proc.read_text(folder / "stat") or "")
    if stat is not None:
        yield Reading("process", "user_cpu", "s", stat.user_ns / NS_PER_S)
        yield Reading("process", "system_cpu", "s", stat.system_ns / NS_PER_S)
        yield Reading("process", "minor_faults", "count", float(stat.minor_faults))
        yield Reading("process", "major_faults", "count", float(stat.major_faults))
        yield Reading("process", "threads", "count", float(stat.threads))
    resident = proc.parse_resident(proc.read_text(folder / "statm") or "")
    if resident is not None:
        yield Reading("process", "rss", "bytes", float(resident))
    yield from _read_files(folder)


def read_children(root: Path, pid: int) -> Iterator[Reading]:
    """CPU of all processes that a process has started, and of theirs, those that have ended included."""
    total_ns = _children_ns(root, pid)
    if total_ns is not None:
        yield Reading("children", "cpu", "s", total_ns / NS_PER_S)


def _children_ns(root: Path, pid: int) -> int | None:
    stat = proc.parse_stat(proc.read_text(root / "proc" / str(pid) / "stat") or "")
    children = proc.list_children(pid, root)
    if stat is None or children is None:
        return None
    total_ns = stat.ended_ns
    for child in children:
        own = proc.parse_stat(proc.read_text(root / "proc" / str(child) / "stat") or "")
        if own is not None:  # else it has ended since
            total_ns += own.user_ns + own.system_ns + (_children_ns(root, child) or own.ended_ns)
    return total_ns


def _read_files(folder: Path) -> Iterator[Reading]:
    traffic = proc.parse_named_counts(proc.read_text(folder / "io") or "")
    for name, field in (("read", "read_bytes"), ("written", "write_bytes")):
        if field in traffic:
            yield Reading("process", name, "bytes", float(traffic[field]))
    try:
        yield Reading("process", "open_files", "count", float(len(os.listdir(folder / "fd"))))
    except OSError:  # gone, or somebody else's process
        return


def read_cores(root: Path) -> Iterator[Reading]:
    """Busy and stolen time of every core."""
    for number, times in proc.parse_cores(proc.read_text(root / "proc/stat") or "").items():
        yield Reading(f"core:{number}", "busy", "s", times.busy_ns / NS_PER_S)
        yield Reading(f"core:{number}", "steal", "s", times.steal_ns / NS_PER_S)


def read_host(root: Path, groups: list[Path]) -> Iterator[Reading]:
    """Soft interrupts, pressure, disks, and the CPU quota of the target's control groups."""
    for kind, count in proc.parse_softirqs(proc.read_text(root / "proc/softirqs") or "").items():
        yield Reading("host", f"softirq_{kind}", "count", float(count))
    for resource in PRESSURES:
        totals = proc.parse_pressure(proc.read_text(root / "proc/pressure" / resource) or "")
        for extent, total_ns in totals.items():
            yield Reading("host", f"pressure_{resource}_{extent}", "s", total_ns / NS_PER_S)
    disks = proc.parse_diskstats(proc.read_text(root / "proc/diskstats") or "", find_disks(root))
    if disks is not None:
        yield Reading("host", "disk_read", "bytes", float(disks.read_bytes))
        yield Reading("host", "disk_written", "bytes", float(disks.written_bytes))
    throttling = read_throttling(groups)
    if throttling is not None:
        yield Reading("host", "throttled", "s", throttling.throttled_ns / NS_PER_S)
        yield Reading("host", "throttled_periods", "count", float(throttling.periods))


def find_disks(root: Path) -> frozenset[str]:
    """Names of the block devices whose traffic reaches hardware, each counted once."""
    try:
        names = os.listdir(root / "sys/block")
    except OSError:
        return frozenset()
    return frozenset(name for name in names if not name.startswith(_NOT_HARDWARE))
