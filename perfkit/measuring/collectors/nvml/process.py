"""Who asks the GPU's driver while a run goes on? This process: `python -m … SPEC.json`.

It asks on a grid of instants (a late look shifts no later one) and appends every answer to a series
file. What the driver does not tell, and why, goes into a file of its own, rewritten when it changes.
It ends on SIGTERM (after one last look), when the target ends, and with the process that started it.
Its own cost and jitter are series: `gpu_sampler`, `cpu` (s, a counter) and `lateness` (s behind the grid).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from perfkit.clock import NS_PER_S, REAL_CLOCK, Clock, epoch_ns, process_cpu_ns
from perfkit.errors import CollectorUnavailable
from perfkit.measuring.collectors.nvml.library import (
    Gpu,
    close_library,
    driver_version,
    find_gpu,
    list_gpus,
    open_library,
)
from perfkit.measuring.collectors.nvml.watch import GpuWatch
from perfkit.measuring.collectors.process import find_start
from perfkit.measuring.collectors.sampling import announce_once, enter, wait_for_sigterm
from perfkit.measuring.collectors.series import Reading, SeriesWriter

SLOW_NS = NS_PER_S  # how often the dear and the slow-moving fields are asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """Which process to stop with, where to write, how often to look, and at which GPU (None = at every one)."""

    pid: int
    series: str
    facts: str
    rate_hz: float
    niceness: int
    uuid: str | None

    def to_json(self) -> str:
        """As the sampler process reads it."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Spec:
        """The spec that `to_json` wrote down."""
        return cls(**json.loads(text))


@dataclass(slots=True, kw_only=True)
class _Grid:
    """Where the sampler stands between its instants. Used by one thread."""

    period_ns: int
    first_ns: int
    next_slow_ns: int

    def lateness_ns(self, now_ns: int) -> int:
        """How far behind the last instant of the grid."""
        return (now_ns - self.first_ns) % self.period_ns

    def take_slow_turn(self, now_ns: int) -> bool:
        """Whether the slow fields are due now; those that were missed are not made up for."""
        is_due = now_ns >= self.next_slow_ns
        while self.next_slow_ns <= now_ns:
            self.next_slow_ns += SLOW_NS
        return is_due


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What drives the sampler: the clock, how it pauses (True = end), and whom it tells that it is up."""

    clock: Clock
    wait_for_stop: Callable[[int], bool]
    announce: Callable[[], None]


def sample(spec: Spec, watches: Sequence[GpuWatch], around: Surroundings, driver: str | None = None) -> None:
    """Look and write until the target ends or the pause says so; one look more at a stop."""
    clock, first_ns = around.clock, around.clock.now_ns()
    grid = _Grid(period_ns=round(NS_PER_S / spec.rate_hz), first_ns=first_ns, next_slow_ns=first_ns)
    facts = Facts(Path(spec.facts), driver)
    started, is_stopped = find_start(spec.pid), False
    with SeriesWriter(Path(spec.series)) as writer:
        while started is not None and find_start(spec.pid) == started:
            now_ns = clock.now_ns()
            is_slow_turn = grid.take_slow_turn(now_ns)
            _look(writer, watches, is_slow_turn)
            lateness_s = grid.lateness_ns(now_ns) / NS_PER_S
            writer.append(now_ns, [*_own_cost(), Reading("gpu_sampler", "lateness", "s", lateness_s)])
            if is_slow_turn or is_stopped:
                facts.write(watches)
            if is_stopped:
                return
            around.announce()
            is_stopped = around.wait_for_stop(grid.period_ns - grid.lateness_ns(clock.now_ns()))


def _look(writer: SeriesWriter, watches: Sequence[GpuWatch], is_slow_turn: bool) -> None:
    for watch in watches:
        for answer in watch.read(is_slow_turn):
            writer.append(answer.time_ns, answer.readings)


def _own_cost() -> list[Reading]:
    return [Reading("gpu_sampler", "cpu", "s", process_cpu_ns() / NS_PER_S)]


class Facts:
    """The file that says what each GPU is and what it does not tell. Used by one thread."""

    def __init__(self, path: Path, driver: str | None) -> None:
        self._path = path
        self._driver = driver
        self._written: dict[str, Any] | None = None

    def write(self, watches: Sequence[GpuWatch]) -> None:
        """Replace the file, whole, when there is something new."""
        document = {"driver": self._driver, "gpus": [watch.facts() for watch in watches]}
        if document != self._written:
            draft = self._path.with_suffix(".draft")
            draft.write_text(json.dumps(document), "utf-8")
            os.replace(draft, self._path)
            self._written = document


def _chosen(gpus: Sequence[Gpu], uuid: str | None) -> Sequence[Gpu]:
    if uuid is None:
        return gpus
    found = find_gpu(gpus, uuid)
    if found is None:
        shown = ", ".join(gpu.uuid for gpu in gpus)
        raise CollectorUnavailable(f"the service computes on GPU {uuid}, which the driver does not show here ({shown})")
    return [found]


def main(path: str) -> None:
    """Run as told by a spec file."""
    spec = Spec.from_json(Path(path).read_text("utf-8"))
    enter(spec.niceness)
    nvml = open_library()
    watches = [GpuWatch(nvml, gpu, REAL_CLOCK, epoch_ns) for gpu in _chosen(list_gpus(nvml), spec.uuid)]
    around = Surroundings(clock=REAL_CLOCK, wait_for_stop=wait_for_sigterm, announce=announce_once())
    sample(spec, watches, around, driver_version(nvml))
    for watch in watches:
        watch.close()
    close_library(nvml)


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except CollectorUnavailable as unavailable:
        print(unavailable, file=sys.stderr)
        sys.exit(unavailable.exit_code)
