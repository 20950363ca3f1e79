"""Who reads the counters while a run goes on? This process: `python -m … SPEC.json`.

It reads the target and the host on a grid of instants (a late reading shifts no later one) and
appends each instant to a series file, so that a kill loses nothing that was read. It ends on
SIGTERM (after one last reading), when the target ends, and with the process that started it. Its
own cost is a series of its own: `sampler`, `cpu` (s).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from perfkit.clock import NS_PER_S, REAL_CLOCK, Clock, process_cpu_ns
from perfkit.measuring.collectors.proc import parse_stat, read_text
from perfkit.measuring.collectors.sampling import announce_once, enter, wait_for_sigterm
from perfkit.measuring.collectors.series import Reading, SeriesWriter
from perfkit.measuring.collectors.system import read_children, read_cores, read_host, read_process
from perfkit.measuring.collectors.threads import read_threads
from perfkit.quota import find_groups

_ROOT = Path("/")
_ENDED_STATES = ("Z", "X")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """What to watch, where to write, how often, and at which niceness."""

    pid: int
    path: str
    rate_hz: float
    niceness: int
    thread_names: dict[int, str]

    def to_json(self) -> str:
        """As the sampler process reads it."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Spec:
        """The spec that `to_json` wrote down."""
        values = json.loads(text)
        names = {int(thread_id): name for thread_id, name in values.pop("thread_names").items()}
        return cls(thread_names=names, **values)


def find_start(pid: int, root: Path = _ROOT) -> int | None:
    """When a process started, in clock ticks since boot: tells it from a later one with its id. None = not running."""
    stat = parse_stat(read_text(root / "proc" / str(pid) / "stat") or "")
    return None if stat is None or stat.state in _ENDED_STATES else stat.started_ticks


def sample(spec: Spec, clock: Clock, wait_for_stop: Callable[[int], bool], announce: Callable[[], None]) -> None:
    """Read and write until the target ends or `wait_for_stop(nanoseconds)` says so; one reading more at a stop."""
    groups = find_groups(_ROOT, spec.pid)
    names = dict(spec.thread_names)
    period_ns = round(NS_PER_S / spec.rate_hz)
    started = find_start(spec.pid)
    is_stopped = False
    with SeriesWriter(Path(spec.path)) as writer:
        first_ns = clock.now_ns()
        while started is not None and find_start(spec.pid) == started:
            writer.append(clock.now_ns(), _read_all(spec.pid, groups, names))
            if is_stopped:
                return
            announce()
            elapsed_ns = clock.now_ns() - first_ns
            is_stopped = wait_for_stop(period_ns - elapsed_ns % period_ns)


def _read_all(pid: int, groups: list[Path], names: dict[int, str]) -> Iterator[Reading]:
    yield from read_threads(_ROOT, pid, names)
    yield from read_process(_ROOT, pid)
    yield from read_children(_ROOT, pid)
    yield from read_cores(_ROOT)
    yield from read_host(_ROOT, groups)
    yield Reading("sampler", "cpu", "s", process_cpu_ns() / NS_PER_S)


def main(path: str) -> None:
    """Run as told by a spec file."""
    spec = Spec.from_json(Path(path).read_text("utf-8"))
    enter(spec.niceness)
    sample(spec, REAL_CLOCK, wait_for_sigterm, announce_once())


if __name__ == "__main__":
    main(sys.argv[1])
