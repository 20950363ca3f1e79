"""What happens while load runs once against a service? One *round*: everything recorded, nothing judged.

The order matters: collectors first, then the counters, then the load; afterwards the counters
again, and only then the ledger, whose reading costs the server time.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfkit.clock import NS_PER_S, REAL_CLOCK
from perfkit.errors import CollectorUnavailable, ConfigError, EnvironmentLacks
from perfkit.measuring.collectors.collector import Collector, Recording, Target
from perfkit.measuring.joining import batch_table, request_table
from perfkit.measuring.ledgerreader import LedgerReader
from perfkit.measuring.load.client import start
from perfkit.measuring.load.loops import Load
from perfkit.measuring.load.samples import read_samples
from perfkit.measuring.load.spec import LoadSpec
from perfkit.measuring.service import Service
from perfkit.resources import data_path

if TYPE_CHECKING:
    import pandas as pd

_POLL_S = 0.25
_IDS_PER_ROUND = 100_000_000
_LISTENS_AFTER_S = 5.0
_LEAST_SETTLE_S = 0.4
_SETTLE_RATIO = 0.1


def check_seconds(seconds: float) -> None:
    """Raises ConfigError unless it is a time that something can be measured for."""
    if not 0 < seconds < math.inf:
        raise ConfigError(f"seconds is {seconds:g}; it takes a number above 0")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What one round applies: the load, for how long, with which payloads."""

    load: Load
    seconds: float
    payloads: Path
    round_index: int

    def __post_init__(self) -> None:
        check_seconds(self.seconds)

    @property
    def load_seconds(self) -> float:
        """How long load is applied: the measured time, and room in front of it for the warm-up to be found in."""
        return self.seconds + max(_LEAST_SETTLE_S, _SETTLE_RATIO * self.seconds)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a round is, for whoever shows it."""

    elapsed_s: float
    total_s: float
    samples: Path
    stats: dict[str, Any] | None


Watch = Callable[[Progress], bool | None]
"""Is shown the progress a few times a second; True ends the load early, and what was measured is kept."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """All that was recorded in one round. Tables and plain JSON values."""

    requests: pd.DataFrame
    batches: pd.DataFrame
    recordings: Sequence[Recording]
    phase: dict[str, Any]
    gauges: list[dict[str, Any]]
    counters: list[dict[str, Any]]
    generator_report: dict[str, Any]
    notes: list[str]


def run_round(
    service: Service, plan: Plan, collectors: Sequence[Collector], folder: Path, watch: Watch | None = None
) -> Round:
    """Apply the load once. Raises TargetFailed when the service dies, whatever was recorded being lost with it."""
    recordings: list[Recording] = []
    with contextlib.ExitStack() as stops:  # every collector that started is stopped, whatever happens
        notes = _start_collectors(service, collectors, folder, stops, recordings)
        before = service.stats()
        ledger = LedgerReader(service, before)
        gauges = [_gauge(before, plan.round_index)] if before else []
        report = _apply_load(service, plan, folder, _Watchers(gauges=gauges, ledger=ledger, watch=watch))
        after = service.stats()
    if after:
        gauges.append(_gauge(after, plan.round_index))
    rows, batch_rows = ledger.finish()
    batches = batch_table(batch_rows, plan.round_index)
    requests = request_table(read_samples(folder / "load.samples"), rows, batches, plan.round_index)
    return Round(
        requests=requests,
        batches=batches,
        recordings=recordings,
        phase={"index": plan.round_index, "started_ns": report["started_ns"], "ended_ns": report["ended_ns"]},
        gauges=gauges,
        counters=_counters(before, after, ledger.lost, rows, plan.round_index),
        generator_report={"round": plan.round_index, **report},
        notes=notes + [note for recording in recordings for note in _remarks(recording)],
    )


def _start_collectors(
    service: Service,
    collectors: Sequence[Collector],
    folder: Path,
    stops: contextlib.ExitStack,
    recordings: list[Recording],
) -> list[str]:
    """Start what can be; returns why the others are missing. Their recordings come when `stops` unwinds."""
    notes: list[str] = []
    stats = service.stats()
    if service.pid is None:
        return [f"{collector.name}: not recorded, the service's process is not known" for collector in collectors]
    names = {int(thread): name for thread, name in stats["threads"].items()} if stats else None
    for collector in collectors:
        try:
            collector.start(Target(pid=service.pid, folder=folder, thread_names=names))
        except CollectorUnavailable as error:
            notes.append(f"{collector.name}: {error}")
        else:
            stops.callback(_hand_over, collector, recordings)
    return notes


def _hand_over(collector: Collector, recordings: list[Recording]) -> None:
    recordings.append(collector.stop())


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Watchers:
    """Who is told, a few times a second, how the load goes on."""

    gauges: list[dict[str, Any]]
    ledger: LedgerReader
    watch: Watch | None


def _apply_load(service: Service, plan: Plan, folder: Path, watchers: _Watchers) -> dict[str, Any]:
    generator = start(_load_spec(service, plan, folder), folder)
    began_ns = REAL_CLOCK.now_ns()
    try:
        while not generator.wait_briefly(_POLL_S):
            service.check_alive()
            stats = service.stats()
            if stats:
                watchers.gauges.append(_gauge(stats, plan.round_index))
                watchers.ledger.read_if_due(stats)
            elapsed_s = (REAL_CLOCK.now_ns() - began_ns) / NS_PER_S
            progress = Progress(
                elapsed_s=elapsed_s, total_s=plan.load_seconds, samples=folder / "load.samples", stats=stats
            )
            if watchers.watch is not None and watchers.watch(progress) and _can_end(progress):
                generator.stop()
        return generator.report()
    finally:
        generator.stop()


def _can_end(progress: Progress) -> bool:
    """A generator knows how to end in order once it has written something; without any reply, only time tells."""
    samples = progress.samples
    return samples.exists() and (samples.stat().st_size > 0 or progress.elapsed_s > _LISTENS_AFTER_S)


def _load_spec(service: Service, plan: Plan, folder: Path) -> LoadSpec:
    placement = service.placement
    return LoadSpec(
        url=service.predict_url,
        load=plan.load,
        seconds=plan.load_seconds,
        seed=plan.load.seed + plan.round_index,
        payloads=plan.payloads,
        first_request_id=1 + plan.round_index * _IDS_PER_ROUND,
        samples=folder / "load.samples",
        report=folder / "load.report.json",
        cpus=placement.generator_cpus,
        nice=placement.generator_nice,
        allow_remote=plan.load.allow_remote,
    )


def _gauge(stats: dict[str, Any], round_index: int) -> dict[str, Any]:
    return {**stats["gauge"], "queued": stats["queued"], "round": round_index}


def _counters(
    before: dict[str, Any] | None, after: dict[str, Any] | None, lost: int, ledger: Any | None, round_index: int
) -> list[dict[str, Any]]:
    if before is None or after is None:
        return []
    rows = {"ledger_rows": 0 if ledger is None else ledger.num_rows, "ledger_dropped": lost}
    zero = dict.fromkeys(rows, 0)
    return [{"round": round_index, "before": before["counters"] | zero, "after": after["counters"] | rows}]


def _remarks(recording: Recording) -> list[str]:
    gap = [f"{recording.name}: {recording.missing}"] if recording.missing else []
    return gap + [f"{recording.name}: {note}" for note in recording.notes]


def find_payloads(service: Service, load: Load) -> Path:
    """The file of request bodies: the load's own, else what the service's model names; raises ConfigError."""
    if load.payloads is not None:
        return _payload_file(load.payloads)
    stats = service.stats()
    if stats is None or not stats["payloads"]:
        raise ConfigError(
            "no payloads are known for this service; give a file of request bodies, one JSON document a line"
        )
    return _payload_file(stats["payloads"])


def _payload_file(name: str) -> Path:
    """A file of the user's, else one of ours under data/."""
    path = Path(name)
    if path.exists():
        return path
    try:
        return data_path(*path.parts)
    except EnvironmentLacks:
        raise ConfigError(
            f"payloads is {name!r}, which is no file; give a file of request bodies, one JSON document a line"
        ) from None
