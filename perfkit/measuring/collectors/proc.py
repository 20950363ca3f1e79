"""What do the kernel's own files say about a thread, a process and the host?

Each function takes the text of one file under /proc or /sys and returns its values, or `None`
(an empty dict where it returns one) when the text does not hold them: a kernel built without a
counter gives no zero. Times come back in integer `_ns`, sizes in bytes, counts as counters.
Formats: the kernel's Documentation/filesystems/proc.rst and Documentation/accounting/psi.rst.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from perfkit.clock import NS_PER_S

_TICK_NS = NS_PER_S // os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_SECTOR_BYTES = 512  # the unit of /proc/diskstats, whatever the device's own sector is


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """schedstat: time on a CPU, time runnable but waiting for one, and how many turns it got."""

    on_cpu_ns: int
    runqueue_ns: int
    slices: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stat:
    """stat of a process or thread: state letter, faults, CPU by mode, threads, start in clock ticks.

    `ended_ns` is the CPU of its children that have ended and were waited for, and of theirs.
    """

    state: str
    minor_faults: int
    major_faults: int
    user_ns: int
    system_ns: int
    ended_ns: int
    threads: int
    started_ticks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Switches:
    """Context switches: the thread gave the CPU up, or lost it."""

    voluntary: int
    involuntary: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreTimes:
    """One core since boot: busy with anything, and stolen by the hypervisor."""

    busy_ns: int
    steal_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttling:
    """A cgroup's CPU quota: periods in which it was used up, and the time held back."""

    periods: int
    throttled_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskTraffic:
    """Bytes that all block devices have moved since boot."""

    read_bytes: int
    written_bytes: int


def read_text(path: Path) -> str | None:
    """A file's text, or None when it is absent, gone or forbidden."""
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return None


def list_threads(pid: int, root: Path = Path("/")) -> list[int]:
    """Native ids of the live threads of a process; empty when it has gone."""
    try:
        return sorted(int(name) for name in os.listdir(root / "proc" / str(pid) / "task"))
    except OSError:
        return []


def list_children(pid: int, root: Path = Path("/")) -> list[int] | None:
    """Processes that the threads of a process have started and that were not waited for; None = not told."""
    found: list[int] = []
    for thread_id in list_threads(pid, root):
        text = read_text(root / "proc" / str(pid) / "task" / str(thread_id) / "children")
        if text is None:
            return None
        found += map(int, text.split())
    return found


def parse_schedstat(text: str) -> Schedule | None:
    """/proc/PID/task/TID/schedstat (of a process: its main thread only)."""
    parts = text.split()
    if len(parts) != 3:
        return None
    on_cpu, runqueue, slices = map(int, parts)
    return Schedule(on_cpu_ns=on_cpu, runqueue_ns=runqueue, slices=slices)


def parse_stat(text: str) -> Stat | None:
    """/proc/PID/stat or /proc/PID/task/TID/stat; the name in it may hold spaces and brackets."""
    parts = text.rpartition(")")[2].split()
    if len(parts) < 20:
        return None
    return Stat(
        state=parts[0],
        minor_faults=int(parts[7]),
        major_faults=int(parts[9]),
        user_ns=int(parts[11]) * _TICK_NS,
        system_ns=int(parts[12]) * _TICK_NS,
        ended_ns=(int(parts[13]) + int(parts[14])) * _TICK_NS,
        threads=int(parts[17]),
        started_ticks=int(parts[19]),
    )


def parse_switches(text: str) -> Switches | None:
    """/proc/PID/task/TID/status."""
    found = parse_named_counts(text)
    try:
        return Switches(voluntary=found["voluntary_ctxt_switches"], involuntary=found["nonvoluntary_ctxt_switches"])
    except KeyError:
        return None


def parse_resident(text: str) -> int | None:
    """/proc/PID/statm: bytes resident in memory."""
    parts = text.split()
    return int(parts[1]) * PAGE_BYTES if len(parts) >= 2 else None


def parse_named_counts(text: str) -> dict[str, int]:
    """Lines of `name: number`, as in /proc/PID/io and status; other lines are skipped."""
    pairs = (line.partition(":") for line in text.splitlines())
    return {name: int(value) for name, _, value in pairs if value.strip().isdigit()}


def parse_cores(text: str) -> dict[int, CoreTimes]:
    """/proc/stat, per core. Guest time is part of user time already; idle and iowait are not busy."""
    cores = {}
    for line in text.splitlines():
        label, *fields = line.split()
        number = label.removeprefix("cpu")
        if label.startswith("cpu") and number.isdigit() and len(fields) >= 8:
            user, nice, system, _, _, irq, softirq, steal = map(int, fields[:8])
            busy = user + nice + system + irq + softirq
            cores[int(number)] = CoreTimes(busy_ns=busy * _TICK_NS, steal_ns=steal * _TICK_NS)
    return cores


def parse_softirqs(text: str) -> dict[str, int]:
    """/proc/softirqs: how often each kind ran, over all cores, by lower-case name."""
    counts = {}
    for line in text.splitlines():
        name, colon, fields = line.partition(":")
        if colon:
            counts[name.strip().lower()] = sum(map(int, fields.split()))
    return counts


def parse_pressure(text: str) -> dict[str, int]:
    """/proc/pressure/*: nanoseconds in which some, or all, runnable tasks were held up."""
    totals = {}
    for line in text.splitlines():
        kind, _, fields = line.partition(" ")
        total = fields.rpartition("total=")[2]
        if total.isdigit():
            totals[kind] = int(total) * 1_000
    return totals


def parse_throttling(text: str) -> Throttling | None:
    """cpu.stat of a cgroup: version 1 counts nanoseconds, version 2 microseconds."""
    words = (line.split() for line in text.splitlines())
    found = {pair[0]: int(pair[1]) for pair in words if len(pair) == 2 and pair[1].isdigit()}
    periods = found.get("nr_throttled")
    throttled_ns = found.get("throttled_time", found.get("throttled_usec", -1) * 1_000)
    if periods is None or throttled_ns < 0:
        return None
    return Throttling(periods=periods, throttled_ns=throttled_ns)


def parse_diskstats(text: str, devices: frozenset[str]) -> DiskTraffic | None:
    """/proc/diskstats, summed over whole devices (their partitions would count twice)."""
    rows = [line.split() for line in text.splitlines()]
    rows = [row for row in rows if len(row) >= 10 and row[2] in devices]
    if not rows:
        return None
    return DiskTraffic(
        read_bytes=sum(int(row[5]) for row in rows) * _SECTOR_BYTES,
        written_bytes=sum(int(row[9]) for row in rows) * _SECTOR_BYTES,
    )
