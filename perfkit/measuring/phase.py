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
from perfkit.errors import CollectorUnavailable, ConfigError, TargetFailed
from perfkit.measuring.collectors.collector import Collector, Recording, Target
from perfkit.measuring.collectors.deviceview import DeviceView
from perfkit.measuring.joining import batch_table, request_table
from perfkit.measuring.ledgerreader import LedgerReader
from perfkit.measuring.load.client import GeneratorProcess, start_together
from perfkit.measuring.load.loops import Load
from perfkit.measuring.load.merging import merge_reports, read_all_samples
from perfkit.measuring.load.payloads import find_payload_file
from perfkit.measuring.load.spec import LoadSpec
from perfkit.measuring.service import Service

if TYPE_CHECKING:
    import pandas as pd

_POLL_S = 0.25
_IDS_PER_ROUND = 100_000_000
_IDS_PER_STREAM = 10**13  # above any round's, below the numbers that count attempts
_SEEDS_PER_STREAM = 1_000
_LISTENS_AFTER_S = 5.0
_LEAST_SETTLE_S = 0.4
_SETTLE_RATIO = 0.1


def check_seconds(seconds: float) -> None:
    """Raises ConfigError unless it is a time that something can be measured for."""
    if not 0 < seconds < math.inf:
        raise ConfigError(f"seconds is {seconds:g}; it takes a number above 0")


def seconds_measured(load_seconds: float) -> float:
    """The measured time of a round whose load went on so long, to the tenth: `Plan.load_seconds` backwards."""
    long = load_seconds / (1 + _SETTLE_RATIO)
    return round(long if _SETTLE_RATIO * long >= _LEAST_SETTLE_S else load_seconds - _LEAST_SETTLE_S, 1)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """What one generator sends: a load and its payloads."""

    load: Load
    payloads: Path


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What one round applies: the load, for how long, with which payloads, and which others at the same time."""

    load: Load
    seconds: float
    payloads: Path
    round_index: int
    beside: tuple[Stream, ...] = ()

    def __post_init__(self) -> None:
        check_seconds(self.seconds)

    @property
    def streams(self) -> tuple[Stream, ...]:
        """The load and those beside it; a generator process each."""
        return (Stream(load=self.load, payloads=self.payloads), *self.beside)

    @property
    def load_seconds(self) -> float:
        """How long load is applied: the measured time, and room in front of it for the warm-up to be found in."""
        return self.seconds + max(_LEAST_SETTLE_S, _SETTLE_RATIO * self.seconds)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a round is, for whoever shows it."""

    elapsed_s: float
    total_s: float
    samples: tuple[Path, ...]
    """The growing sample files of the first load, one for each of its generators."""
    stats: dict[str, Any] | None


Watch = Callable[[Progress], bool | None]
"""Is shown the progress a few times a second; True ends the load early, and what was measured is kept."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """All that was recorded in one round. Tables and plain JSON values.

    `beside` holds one more for each load beside the first: its own requests and report, the rest in common.
    """

    requests: pd.DataFrame
    batches: pd.DataFrame
    recordings: Sequence[Recording]
    phase: dict[str, Any]
    gauges: list[dict[str, Any]]
    counters: list[dict[str, Any]]
    generator_report: dict[str, Any]
    notes: list[str]
    beside: tuple[Round, ...] = ()


def run_round(
    service: Service, plan: Plan, collectors: Sequence[Collector], folder: Path, watch: Watch | None = None
) -> Round:
    """Apply the load once. Raises TargetFailed when the service dies, whatever was recorded being lost with it."""
    recordings: list[Recording] = []
    with contextlib.ExitStack() as stops:  # every collector that started is stopped, whatever happens
        notes = _start_collectors(service, collectors, folder, stops, recordings)
        before = service.stats()
        ledger, device = LedgerReader(service, before), DeviceView()
        gauges: list[dict[str, Any]] = []
        watchers = _Watchers(gauges=gauges, device=device, ledger=ledger, watch=watch)
        if before:
            watchers.note(before, plan.round_index)
        reports = _apply_load(service, plan, folder, watchers)
        after = service.stats()
    _check_same_process(before, after)
    if after:
        watchers.note(after, plan.round_index)
    recordings.append(device.recording())
    rows, batch_rows = ledger.finish()
    batches = batch_table(batch_rows, plan.round_index)
    counters = _counters(before, after, ledger.lost, rows, plan.round_index)
    notes += [note for recording in recordings for note in _remarks(recording)]
    rounds = [
        Round(
            requests=request_table(_samples(plan, folder, place, report), rows, batches, plan.round_index),
            batches=batches,
            recordings=recordings,
            phase={"index": plan.round_index, "started_ns": report["started_ns"], "ended_ns": report["ended_ns"]},
            gauges=gauges,
            counters=counters,
            generator_report={"round": plan.round_index, **report},
            notes=notes,
        )
        for place, report in enumerate(reports)
    ]
    return dataclasses.replace(rounds[0], beside=tuple(rounds[1:]))


def _samples(plan: Plan, folder: Path, place: int, report: dict[str, Any]) -> dict[str, Any]:
    """The rows of one stream's generators. A body that was sent in several lanes counts as one payload."""
    parts = range(plan.streams[place].load.generators)
    samples = read_all_samples([folder / f"{_name(place, part)}.samples" for part in parts])
    samples["payload"] %= report["payloads"]["count"]
    return samples


def _check_same_process(before: dict[str, Any] | None, after: dict[str, Any] | None) -> None:
    """Raises TargetFailed when the supervisor has started the server again: counters and ledger began anew."""
    if before and after and before["process"]["pid"] != after["process"]["pid"]:
        raise TargetFailed(
            "the server lost its device and was started again while the load ran; see its log, then measure again"
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
    uuid = stats["device"].get("uuid") if stats else None
    for collector in collectors:
        try:
            collector.start(Target(pid=service.pid, folder=folder, thread_names=names, gpu_uuid=uuid))
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
    device: DeviceView
    ledger: LedgerReader
    watch: Watch | None

    def note(self, stats: dict[str, Any], round_index: int) -> None:
        """Keep what a reading of the statistics says of the instant."""
        self.gauges.append(_gauge(stats, round_index))
        self.device.note(stats)


def _apply_load(service: Service, plan: Plan, folder: Path, watchers: _Watchers) -> list[dict[str, Any]]:
    """The report of each stream, in the order of the plan: of all the generators that shared it."""
    with contextlib.ExitStack() as stops:  # every generator that started is stopped, whatever happens
        generators = start_together(_load_specs(service, plan, folder), folder, stops)
        began_ns = REAL_CLOCK.now_ns()
        while not all(generator.wait_briefly(_POLL_S) for generator in generators):
            service.check_alive()
            stats = service.stats()
            if stats:
                watchers.note(stats, plan.round_index)
                watchers.ledger.read_if_due(stats)
            elapsed_s = (REAL_CLOCK.now_ns() - began_ns) / NS_PER_S
            progress = Progress(
                elapsed_s=elapsed_s,
                total_s=plan.load_seconds,
                samples=tuple(one.spec.samples for one in generators[: plan.load.generators]),
                stats=stats,
            )
            if watchers.watch is not None and watchers.watch(progress):
                _end(generators, elapsed_s)
        reports = iter([generator.report() for generator in generators])
    return [merge_reports([next(reports) for _ in range(stream.load.generators)]) for stream in plan.streams]


def _end(generators: Sequence[GeneratorProcess], elapsed_s: float) -> None:
    """End the load early, once all know how to end in order.

    A generator does when it has written something; without any reply, only time tells.
    """
    written = [generator.spec.samples for generator in generators]
    if all(path.exists() and (path.stat().st_size > 0 or elapsed_s > _LISTENS_AFTER_S) for path in written):
        for generator in generators:
            generator.stop()


def _load_specs(service: Service, plan: Plan, folder: Path) -> list[LoadSpec]:
    """One for each generator, those of a stream one after the other."""
    return [
        _load_spec(service, plan, folder, (place, part))
        for place, stream in enumerate(plan.streams)
        for part in range(stream.load.generators)
    ]


def _load_spec(service: Service, plan: Plan, folder: Path, which: tuple[int, int]) -> LoadSpec:
    place, part = which
    stream, placement = plan.streams[place], service.placement
    return LoadSpec(
        url=service.predict_url,
        load=stream.load,
        seconds=plan.load_seconds,
        seed=stream.load.seed + plan.round_index + place * _SEEDS_PER_STREAM,
        payloads=stream.payloads,
        first_request_id=1 + plan.round_index * _IDS_PER_ROUND + place * _IDS_PER_STREAM,
        samples=folder / f"{_name(place, part)}.samples",
        report=folder / f"{_name(place, part)}.report.json",
        cpus=placement.generator_cpus,
        nice=placement.generator_nice,
        allow_remote=stream.load.allow_remote,
        part=part,
    )


def _name(place: int, part: int) -> str:
    """What the files of one generator are called: load, load1, load1-2."""
    return f"load{place or ''}{f'-{part}' if part else ''}"


def _gauge(stats: dict[str, Any], round_index: int) -> dict[str, Any]:
    return {**stats["gauge"], "queued": stats["queued"], "threads": stats["crew"]["current"], "round": round_index}


def _counters(
    before: dict[str, Any] | None, after: dict[str, Any] | None, lost: int, ledger: Any | None, round_index: int
) -> list[dict[str, Any]]:
    if before is None or after is None:
        return []
    rows = {"ledger_rows": 0 if ledger is None else ledger.num_rows, "ledger_dropped": lost}
    zero = dict.fromkeys(rows, 0)
    return [
        {
            "round": round_index,
            "before": before["counters"] | zero,
            "after": after["counters"] | rows,
            "memory": _memory(before, after),
        }
    ]


def _memory(before: dict[str, Any], after: dict[str, Any]) -> dict[str, int]:
    """How often the device's memory ran out meanwhile, and how many requests a call may hold at the end."""
    was, now = before["device"]["memory"], after["device"]["memory"]
    return {name: now[name] - was[name] for name in ("ooms", "retries")} | {"batch_cap": after["batch_cap"]}


def _remarks(recording: Recording) -> list[str]:
    gap = [f"{recording.name}: {recording.missing}"] if recording.missing else []
    return gap + [f"{recording.name}: {note}" for note in recording.notes]


def find_payloads(service: Service, load: Load) -> Path:
    """The file of request bodies: the load's own, else what the service's model names; raises ConfigError.

    Of a mix it is the first, and all of them are looked for.
    """
    if load.mix:
        files = [find_payload_file(str(one.file)) for one in load.mix.values()]
        return files[0]
    if load.payloads is not None:
        return find_payload_file(load.payloads)
    stats = service.stats()
    if stats is None or not stats["payloads"]:
        raise ConfigError(
            "no payloads are known for this service; give a file of request bodies, one JSON document a line"
        )
    return find_payload_file(stats["payloads"])
