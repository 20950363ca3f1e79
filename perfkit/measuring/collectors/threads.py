"""What has each thread of a process done so far: on a CPU, waiting for one, switched how often?

Rows of `thread:<native id>:<name>`, all counters: `cpu` and `runqueue` in seconds, `slices`,
`voluntary_switches`, `involuntary_switches`. Wall time minus `cpu` minus `runqueue` is time blocked.
A thread that lives between two readings leaves no row; the process's own CPU counts it all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from perfkit.clock import NS_PER_S
from perfkit.measuring.collectors.proc import list_threads, parse_schedstat, parse_switches, read_text
from perfkit.measuring.collectors.series import Reading


def read_threads(root: Path, pid: int, names: dict[int, str]) -> list[Reading]:
    """Counters of every live thread; `names` gains the kernel's name of a thread that it lacks."""
    tasks = root / "proc" / str(pid) / "task"
    ids = list_threads(pid, root)
    return [reading for thread_id in ids for reading in _read_thread(tasks / str(thread_id), names)]


def _read_thread(task: Path, names: dict[int, str]) -> Iterator[Reading]:
    thread_id = int(task.name)
    if thread_id not in names:
        names[thread_id] = (read_text(task / "comm") or "gone").strip()
    source = f"thread:{thread_id}:{names[thread_id]}"
    schedule = parse_schedstat(read_text(task / "schedstat") or "")
    if schedule is not None:
        yield Reading(source, "cpu", "s", schedule.on_cpu_ns / NS_PER_S)
        yield Reading(source, "runqueue", "s", schedule.runqueue_ns / NS_PER_S)
        yield Reading(source, "slices", "count", float(schedule.slices))
    switches = parse_switches(read_text(task / "status") or "")
    if switches is not None:
        yield Reading(source, "voluntary_switches", "count", float(switches.voluntary))
        yield Reading(source, "involuntary_switches", "count", float(switches.involuntary))
