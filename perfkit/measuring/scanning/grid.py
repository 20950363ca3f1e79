"""How does throughput and latency change with a setting? Measure a grid, in interleaved rounds.

Every point is measured once a round, in random order, so that a slow minute of the machine does not
fall on one setting; the rounds are pooled. Each part is on disk before the next starts.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from perfkit.clock import calendar_now
from perfkit.errors import TargetFailed
from perfkit.measuring.analysis.best import choose_best
from perfkit.measuring.analysis.scaling.fits import Scaling, fit_scaling
from perfkit.measuring.archive.manifest import new_id
from perfkit.measuring.archive.scanfolder import ScanWriter, create_scan, open_scan
from perfkit.measuring.archive.storedscan import ScanHeader, StoredScan, load_scan
from perfkit.measuring.audience import Step, attending
from perfkit.measuring.experiment import RUNS_FOLDER, Run, certify, instruments, record
from perfkit.measuring.load.loops import ClosedLoop, Load
from perfkit.measuring.phase import Plan, Progress, find_payloads
from perfkit.measuring.scanning.host import Given, Host, Launched
from perfkit.measuring.scanning.plan import Axis, Point, ScanPlan, find_field, grid
from perfkit.measuring.service import Service
from perfkit.settings.server import ServerSettings

USUAL_CONCURRENCY = 8  # users, where nobody says how many
_FITTED = ("knee", "knee_estimates", "fits")
PART_OVERHEAD_S = 0.8  # a part's own: settle, change the setting, start and stop the processes, save


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ScanProgress:
    """How far a scan is: which part of how many, what it is, and how far the part is."""

    part: int
    parts: int
    varied: Mapping[str, Any]
    part_seconds: float
    live: Progress | None

    @property
    def step(self) -> Step:
        """The same for whoever shows no more than a bar."""
        part_s = self.part_seconds + PART_OVERHEAD_S
        elapsed_s = min(self.live.elapsed_s, part_s) if self.live else 0.0
        doing = f"part {self.part + 1} of {self.parts}: {varied_text(self.varied)}"
        return Step(doing=doing, done_s=self.part * part_s + elapsed_s, total_s=self.parts * part_s)


def varied_text(varied: Mapping[str, Any]) -> str:
    """What tells a point from its neighbours: `workers=2, batch.max_size=4`."""
    return ", ".join(f"{name}={value}" for name, value in varied.items()) or "the only setting"


ScanWatch = Callable[[ScanProgress], None]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """A finished scan on disk. `scan[8]` is the run at that value of the varied setting."""

    stored: StoredScan

    @property
    def folder(self) -> Path:
        """Where it lies."""
        return self.stored.path

    @property
    def points(self) -> Sequence[Mapping[str, Any]]:
        """One point per cell, in the order given, as `perfkit scan --json` prints them."""
        return self.stored.header.points

    @property
    def knee(self) -> Mapping[str, Any] | None:
        """Where more of the varied setting stops paying, as an interval; None when it cannot be said."""
        knee: Mapping[str, Any] | None = self.stored.header.summary.get("knee")
        return knee

    @property
    def fits(self) -> Mapping[str, Any]:
        """`knee`, `knee_estimates` and `fits` as they were archived; of an older scan, as its points give them."""
        summary = self.stored.header.summary
        known = {name: summary[name] for name in _FITTED if name in summary}
        return known if len(known) == len(_FITTED) else self.scaling().to_json() | known

    def scaling(self, p99_s: float | None = None) -> Scaling:
        """What limits the service and where the knee is: USL, bounds, batch model, four estimators.

        `print` it for the sentences. `p99_s` is the latency budget that one of the estimators needs.
        """
        return fit_scaling(self.points, p99_s)

    def best(self, p99_s: float | None = None) -> Mapping[str, Any] | None:
        """The setting with the most throughput whose P99 stays within `p99_s`, why, and on which basis."""
        return choose_best(self.points, p99_s)

    def run(self, index: int) -> Run:
        """The pooled run of one point, by its place in `points`."""
        return Run(stored=self.stored.run(index))

    def __getitem__(self, value: Any) -> Run:
        for index, point in enumerate(self.points):
            if value in point["varied"].values() or value == tuple(point["varied"].values()):
                return self.run(index)
        known = ", ".join(str(list(point["varied"].values())) for point in self.points)
        raise KeyError(f"no point at {value!r}; measured: {known}")

    def to_json(self, p99_s: float | None = None) -> dict[str, Any]:
        """The document of `perfkit scan --json`; with a latency budget, knee and best are those within it."""
        return {
            "schema": 1,
            "simulated": self.stored.header.simulated,
            "points": list(self.points),
            **(self.fits if p99_s is None else self.scaling(p99_s).to_json()),
            "best": self.stored.header.summary.get("best") if p99_s is None else self.best(p99_s),
            "folder": str(self.folder),
        }


def scan(
    target: Service | ServerSettings,
    name: str | Mapping[str, Sequence[Any]],
    values: Sequence[Any] = (),
    load: Load | None = None,
    seconds: float = 5.0,
) -> Scan:
    """Vary a setting or load field: `seconds` per point, in two interleaved rounds.

    A running service is reconfigured live and has its settings back afterwards. With settings instead, the scan
    starts a service of its own, and a new one wherever a setting cannot change live.
    For a grid give names with their values: `scan(service, {"workers": [1, 2], "batch.max_size": [1, 8]})`.
    Without a load there are 8 users in a closed loop. Raises ConfigError for an unknown name or value, TargetFailed
    when the service dies.
    """
    load = load or ClosedLoop(concurrency=USUAL_CONCURRENCY)
    wanted = {name: values} if isinstance(name, str) else name
    axes = {key: Axis(name=find_field(key, load), values=tuple(its)) for key, its in wanted.items()}
    before = target if isinstance(target, ServerSettings) else target.settings
    plan = ScanPlan(points=grid(before, load, axes), seconds=seconds, rounds=2, seed=0)
    with _host_of(target) as host, attending() as tell:
        return run_scan(plan, host, new_scan_folder(), lambda progress: tell(progress.step))


@contextlib.contextmanager
def _host_of(target: Service | ServerSettings) -> Iterator[Host]:
    """A service at the settings of each point; a given one is put back in the end."""
    if isinstance(target, ServerSettings):
        with Launched() as launched:
            yield launched
        return
    before, host = target.settings, Given(target)
    try:
        yield host
    finally:
        with contextlib.suppress(TargetFailed):  # it died: what ended the scan is the error to tell
            host.at(before)


def new_scan_folder(parent: Path = RUNS_FOLDER) -> Path:
    """A folder name for a scan that starts now."""
    return parent / f"scan-{new_id(calendar_now())}"


def run_scan(plan: ScanPlan, host: Host, folder: Path, watch: ScanWatch | None = None, resume: bool = False) -> Scan:
    """Measure what is pending of the plan, then pool, judge and finish.

    Interrupted at any instant, at most the running part is lost; call again with `resume`.
    """
    if not resume:
        _require_start(plan, host)
    with _open(plan, folder, resume) as writer:
        pending = writer.pending_parts()
        done = len(writer.stored.parts()) - len(pending)
        for number, part in enumerate(pending):
            point = plan.points[part.point]
            report = _reporter(watch, plan, point, done + number)
            contents = _measure_part(plan, host.at(point.settings), point, part.round, report)
            writer.save_part(part, contents)
        if not writer.stored.is_finished:
            _finish(plan, writer)
    return Scan(stored=load_scan(folder))


def _require_start(plan: ScanPlan, host: Host) -> None:
    """What cannot be served or sent is told before there is a folder that a corrected scan would find taken."""
    first = plan.points[plan.order[0][0]]
    find_payloads(host.at(first.settings), first.load)


def open_scan_results(folder: Path) -> Scan:
    """A scan that was finished before; raises ArchiveError."""
    return Scan(stored=load_scan(folder))


def _open(plan: ScanPlan, folder: Path, resume: bool) -> ScanWriter:
    if resume:
        return open_scan(folder, plan.to_json())
    created = calendar_now()
    simulated = any(point.settings is not None and point.settings.is_simulated for point in plan.points)
    return create_scan(
        folder, ScanHeader(id=new_id(created), created=created, simulated=simulated, plan=plan.to_json())
    )


def _reporter(watch: ScanWatch | None, plan: ScanPlan, point: Point, number: int) -> Callable[[Progress | None], None]:
    def report(live: Progress | None) -> None:
        if watch is not None:
            watch(
                ScanProgress(
                    part=number,
                    parts=len(plan.points) * plan.rounds,
                    varied=point.varied,
                    part_seconds=plan.seconds / plan.rounds,
                    live=live,
                )
            )

    report(None)
    return report


def _measure_part(
    plan: ScanPlan, service: Service, point: Point, round_index: int, report: Callable[[Progress | None], None]
) -> Any:
    one_round = Plan(
        load=point.load,
        seconds=plan.seconds / plan.rounds,
        payloads=find_payloads(service, point.load),
        round_index=round_index,
    )
    return record(service, one_round, instruments(service), report)


def _finish(plan: ScanPlan, writer: ScanWriter) -> None:
    points = []
    for index, point in enumerate(plan.points):
        pooled = certify(writer.pooled(index), point.varied)
        points.append(dict(pooled.manifest.certificate or {}))
    writer.finish(points, {**fit_scaling(points).to_json(), "best": choose_best(points, None)})
