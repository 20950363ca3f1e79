"""What does a newcomer want to see first? Workers, batch size, where the time goes, and whether the advice holds.

One scan over worker threads and over batch sizes (with two sets of payloads where the model takes
texts), a flame graph at the best point, and the best against the default once more.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from perfkit import fields
from perfkit.errors import ArchiveError, CollectorUnavailable
from perfkit.measuring.analysis.best import choose_best
from perfkit.measuring.analysis.scaling.knee import find_knee
from perfkit.measuring.archive.durable import replace_file
from perfkit.measuring.archive.format import DEMO_NAME
from perfkit.measuring.audience import Step
from perfkit.measuring.experiment import Run, open_run
from perfkit.measuring.load.loops import ClosedLoop, Load
from perfkit.measuring.phase import Progress, Watch
from perfkit.measuring.profile import profile
from perfkit.measuring.scanning.grid import PART_OVERHEAD_S, Scan, ScanProgress, open_scan_results, run_scan
from perfkit.measuring.scanning.host import Launched
from perfkit.measuring.scanning.plan import Point, ScanPlan
from perfkit.measuring.service import Service
from perfkit.serving.server.defaults import settings_for
from perfkit.settings.server import ServerSettings

WORKERS = (1, 2, 4, 8)
BATCH_SIZES = (1, 2, 4, 8, 16)
BATCH_WORKERS = 2
IN_FLIGHT = 32
TEXT_MODELS = ("minilm",)
TEXT_SETS = {"short queries": "texts/short.jsonl", "mixed lengths": "texts/mixed.jsonl"}
_STACK_MODES = 3
_SCAN, _FLAME, _FINAL = "scan", "flame graph", "recommended against default"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How long each step of the tour takes, in seconds of measuring."""

    point_s: float = 5.1
    rounds: int = 6
    stacks_s: float = 2.5
    final_s: float = 7.0


FULL = Pace()
SMOKE = Pace(point_s=0.5, rounds=1, stacks_s=0.5, final_s=0.5)


def steady_pace(pace: Pace) -> Pace:
    """The pace for a simulated service, which has no slow minutes: one round, so that a slow one drains once."""
    return dataclasses.replace(pace, rounds=1)


TourWatch = Callable[[Step], None]
"""Is told what is running, and how far the whole tour is."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A part of the scan as one curve: its label, the varied setting, and the points' places in the scan."""

    label: str
    varied: str
    indices: tuple[int, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Tour:
    """A finished tour on disk."""

    folder: Path
    scan: Scan
    series: tuple[Series, ...]
    best: Mapping[str, Any] | None
    stacks: Run | None
    stacks_missing: str
    final: Scan | None

    @property
    def final_missing(self) -> str:
        """Why the recommended setting was not compared with the default; empty when it was."""
        if self.final is not None:
            return ""
        if self.best is None:
            return "Nothing was compared with the default: no point could be recommended."
        return "Nothing was compared with the default: it is the recommended setting."

    def points(self, series: Series) -> list[Mapping[str, Any]]:
        """The points of one curve, each carrying only the setting that the curve varies."""
        chosen = [self.scan.points[index] for index in series.indices]
        return [{**point, "varied": {series.varied: point["varied"][series.varied]}} for point in chosen]

    def knee(self, series: Series) -> Mapping[str, Any] | None:
        """The knee of one curve, as an interval."""
        return find_knee(self.points(series))


def tour_plan(model: str, pace: Pace) -> tuple[ScanPlan, tuple[Series, ...]]:
    """The points of the tour, each measured once even where two curves share it; raises ConfigError."""
    settings = settings_for(model, {})
    points: list[Point] = []
    curves: list[Series] = []
    sets: Mapping[str, str | None] = TEXT_SETS if model in TEXT_MODELS else {"": None}
    for number, (label, payloads) in enumerate(sets.items()):
        load = ClosedLoop(concurrency=IN_FLIGHT, payloads=payloads)
        cells = [(workers, 1) for workers in WORKERS] if number == 0 else []
        cells += [(BATCH_WORKERS, size) for size in BATCH_SIZES]
        at = {cell: len(points) + place for place, cell in enumerate(dict.fromkeys(cells))}
        points += [_point(settings, load, cell, label) for cell in at]
        if number == 0:
            curves.append(Series(label=label, varied="workers", indices=tuple(at[w, 1] for w in WORKERS)))
        curves.append(
            Series(label=label, varied="batch.max_size", indices=tuple(at[BATCH_WORKERS, b] for b in BATCH_SIZES))
        )
    plan = ScanPlan(points=tuple(points), seconds=pace.point_s, rounds=pace.rounds, seed=0)
    return plan, tuple(curves)


def run_tour(model: str, folder: Path, pace: Pace, watch: TourWatch) -> Tour:
    """Measure everything and archive it under `folder`; raises what a scan raises."""
    default = settings_for(model, {})
    pace = steady_pace(pace) if default.is_simulated else pace
    plan, series = tour_plan(model, pace)
    budget = _Budget(plan, pace, watch)
    with Launched() as host:
        scan = run_scan(plan, host, folder / "scan", budget.scan)
        best = _best(scan)
        chosen = fields.from_nested(ServerSettings, best["settings"]) if best else default
        budget.begin(_FLAME)
        load = plan.points[0].load
        stacks, missing = _record_stacks(host.at(chosen), load, pace.stacks_s, folder, budget.round)
        budget.begin(_FINAL)
        final = None
        if chosen != default:
            final = run_scan(_final_plan(default, chosen, load, pace), host, folder / "final", budget.scan)
    tour = Tour(folder=folder, scan=scan, series=series, best=best, stacks=stacks, stacks_missing=missing, final=final)
    _write_index(tour)
    return tour


def open_tour(folder: Path) -> Tour:
    """A tour that was archived before; raises ArchiveError."""
    try:
        index = json.loads((folder / DEMO_NAME).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ArchiveError(f"{folder} holds no demo ({error}); give the folder that perfkit demo wrote") from error
    scan = open_scan_results(folder / "scan")
    series = tuple(Series(**{**entry, "indices": tuple(entry["indices"])}) for entry in index["series"])
    return Tour(
        folder=folder,
        scan=scan,
        series=series,
        best=_best(scan),
        stacks=open_run(folder / index["stacks"]) if index["stacks"] else None,
        stacks_missing=index["stacks_missing"],
        final=open_scan_results(folder / "final") if index["has_final"] else None,
    )


def _write_index(tour: Tour) -> None:
    document = {
        "schema": 1,
        "simulated": bool(tour.scan.stored.header.simulated),
        "series": [dataclasses.asdict(series) for series in tour.series],
        "stacks": str(tour.stacks.folder.relative_to(tour.folder)) if tour.stacks else None,
        "stacks_missing": tour.stacks_missing,
        "has_final": tour.final is not None,
    }
    replace_file(tour.folder / DEMO_NAME, json.dumps(document, indent=1).encode())


def _point(settings: ServerSettings, load: ClosedLoop, cell: tuple[int, int], label: str) -> Point:
    workers, size = cell
    changed = fields.replace(settings, {"workers": workers, "batch.max_size": size, "topology": "staged"})
    varied: dict[str, Any] = {"workers": workers, "batch.max_size": size}
    return Point(settings=changed, load=load, varied=varied | ({"payloads": label} if label else {}))


def _best(scan: Scan) -> Mapping[str, Any] | None:
    """The best point under the first set of payloads: the one that a default run sends."""
    first = scan.points[0]["varied"].get("payloads")
    return choose_best([point for point in scan.points if point["varied"].get("payloads") == first], None)


def _record_stacks(service: Service, load: Load, seconds: float, folder: Path, watch: Watch) -> tuple[Run | None, str]:
    try:
        return profile(service, load, seconds, folder, watch), ""
    except CollectorUnavailable as error:
        return None, str(error)


def _final_plan(default: ServerSettings, chosen: ServerSettings, load: Load, pace: Pace) -> ScanPlan:
    """The default and the recommended setting once more, side by side."""
    points = tuple(
        Point(settings=settings, load=load, varied={"setting": name})
        for name, settings in (("default", default), ("recommended", chosen))
    )
    return ScanPlan(points=points, seconds=pace.final_s, rounds=pace.rounds, seed=1)


class _Budget:
    """Turns the progress of each step into the progress of the whole tour."""

    def __init__(self, plan: ScanPlan, pace: Pace, watch: TourWatch) -> None:
        scan_s = len(plan.points) * plan.rounds * (plan.seconds / plan.rounds + PART_OVERHEAD_S)
        stacks_s = _STACK_MODES * (pace.stacks_s + PART_OVERHEAD_S)
        final_s = 2 * (pace.final_s + pace.rounds * PART_OVERHEAD_S)
        self._watch = watch
        self._total_s = scan_s + stacks_s + final_s
        self._starts_s = {_SCAN: 0.0, _FLAME: scan_s, _FINAL: scan_s + stacks_s}
        self._step = _SCAN

    def begin(self, step: str) -> None:
        """The next step starts."""
        self._step = step
        self._tell(step, 0.0)

    def round(self, progress: Progress) -> None:
        """The one round of a step goes on."""
        self._tell(self._step, progress.elapsed_s)

    def scan(self, progress: ScanProgress) -> None:
        """A part of a scan goes on."""
        part_s = progress.part_seconds + PART_OVERHEAD_S
        varied = ", ".join(f"{name}={value}" for name, value in progress.varied.items())
        self._tell(f"{self._step}: {varied}", progress.part * part_s + _elapsed_s(progress.live, part_s))

    def _tell(self, doing: str, done_s: float) -> None:
        self._watch(Step(doing=doing, done_s=self._starts_s[self._step] + done_s, total_s=self._total_s))


def _elapsed_s(live: Progress | None, most_s: float) -> float:
    return 0.0 if live is None else min(live.elapsed_s, most_s)
