"""What is a measurement? A service at one setting under one load, recorded, judged, and on disk."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfkit import fields
from perfkit.clock import calendar_now
from perfkit.errors import ConfigError
from perfkit.measuring.analysis.mixture import set_figures
from perfkit.measuring.analysis.precision import Goal
from perfkit.measuring.analysis.rundata import RunData
from perfkit.measuring.analysis.soak import soak_figures
from perfkit.measuring.analysis.steppoints import step_points
from perfkit.measuring.analysis.summary import summarise
from perfkit.measuring.archive.folder import RunContents, StoredRun, load_run, save_run
from perfkit.measuring.archive.manifest import Manifest, new_id
from perfkit.measuring.audience import Step, attending
from perfkit.measuring.collectors.collector import Collector, Recording
from perfkit.measuring.collectors.environment import fingerprint
from perfkit.measuring.collectors.nvml.collector import GpuSampler
from perfkit.measuring.collectors.sampler import SystemSampler
from perfkit.measuring.collectors.source import folder_of_model, folder_of_process, read_source
from perfkit.measuring.gilwaits import GilWaits
from perfkit.measuring.load.loops import Load, load_to_nested
from perfkit.measuring.phase import Plan, Progress, Round, Stream, Watch, find_payloads, run_round
from perfkit.measuring.service import Service
from perfkit.settings.server import ServerSettings

if TYPE_CHECKING:
    from pandas import DataFrame

RUNS_FOLDER = Path("perfkit-runs")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A measurement on disk: its point (the figures with their intervals and grade) and its tables."""

    stored: StoredRun

    @property
    def folder(self) -> Path:
        """Where it lies."""
        return self.stored.path

    @property
    def point(self) -> Mapping[str, Any]:
        """The figures, as `perfkit scan --json` prints a point."""
        return self.stored.manifest.certificate or {}

    @property
    def grade(self) -> str:
        """sound, short, unsteady or void."""
        return str(self.point.get("grade", "void"))

    def table(self, name: str) -> DataFrame:
        """requests, batches or series; raises ArchiveError when it is absent."""
        return self.stored.table(name)

    def stacks(self) -> list[dict[str, Any]]:
        """The profiler's recordings, one per mode; empty for a run that was not profiled."""
        return [self.stored.stack(mode) for mode in self.stored.stacks]


def measure(
    service: Service, load: Load, seconds: float = 10.0, out: Path | None = None, watch: Watch | None = None
) -> Run:
    """Apply a load for `seconds` (warm-up not counted) and archive what happened, under `out`.

    Raises TargetFailed when the service dies, ArchiveError when the disk refuses.
    """
    plan = Plan(load=load, seconds=seconds, payloads=find_payloads(service, load), round_index=0)
    with watched(watch, f"measuring for {seconds:g} s") as watching:
        contents = record(service, plan, instruments(service), watching)
    return save(certify(contents, {}), out or RUNS_FOLDER)


def measure_together(
    service: Service,
    loads: Mapping[str, Load],
    seconds: float = 10.0,
    out: Path | None = None,
    watch: Watch | None = None,
) -> dict[str, Run]:
    """Apply several named loads at the same time, each by a generator of its own; a run for each, by its name.

    For what one load does to another: a flood in one lane, a single user in the next. Raises as `measure`.
    """
    plan = plan_together(service, loads, seconds)
    with watched(watch, f"measuring {', '.join(loads)} together") as watching:
        together = record_together(service, plan, instruments(service), watching)
    return {
        name: save(certify(contents, {}), out or RUNS_FOLDER) for name, contents in zip(loads, together, strict=True)
    }


def plan_together(service: Service, loads: Mapping[str, Load], seconds: float) -> Plan:
    """One round of several loads at the same time; raises ConfigError."""
    if not loads:
        raise ConfigError("measure_together got no loads; give at least one, by name")
    first, *others = (Stream(load=load, payloads=find_payloads(service, load)) for load in loads.values())
    return Plan(load=first.load, payloads=first.payloads, seconds=seconds, round_index=0, beside=tuple(others))


@contextlib.contextmanager
def watched(watch: Watch | None, doing: str, seconds: float | None = None) -> Iterator[Watch]:
    """The given watch; without one, the audience is told how far the load is, or how much of `seconds` is over."""
    if watch is not None:
        yield watch
        return
    with attending() as tell:

        def watching(progress: Progress) -> None:
            tell(Step(doing=doing, done_s=progress.elapsed_s, total_s=seconds or progress.total_s))

        yield watching


def instruments(service: Service) -> list[Collector]:
    """What records beside a measurement: thread and system counters, the GPU, and the waits for the GIL."""
    counters: list[Collector] = [SystemSampler(), GpuSampler()]
    return [*counters, GilWaits(service)] if service.control else counters


def open_run(folder: Path) -> Run:
    """A run that was archived before; raises ArchiveError."""
    return Run(stored=load_run(folder))


def record(service: Service, plan: Plan, collectors: Sequence[Collector], watch: Watch | None = None) -> RunContents:
    """One round as the contents of a run, without a certificate."""
    return record_together(service, plan, collectors, watch)[0]


def record_together(
    service: Service, plan: Plan, collectors: Sequence[Collector], watch: Watch | None = None
) -> list[RunContents]:
    """One round as the contents of a run for each of its loads, without certificates."""
    settings = service.settings
    with tempfile.TemporaryDirectory(prefix="perfkit-round-") as folder:
        round_ = run_round(service, plan, collectors, Path(folder), watch)
        moved = _moved(settings, service.settings)
        stats = service.stats()
        capped, executed = _capped(settings, stats), _executed(stats)
        loads = [load_to_nested(stream.load) for stream in plan.streams]
        source = read_source(_source_folder(service, settings))
        found = []
        for place, one in enumerate((round_, *round_.beside)):
            manifest = dataclasses.replace(
                _manifest(one, loads[place]),
                simulated=service.is_simulated,
                title=settings.model if settings else "service",
                settings=fields.to_nested(settings) if settings else {},
                source=source,
                notes=one.notes + moved + capped + executed,
                further={
                    "settings_moved": bool(moved),
                    "graphs_grew": graphs_grew(stats),
                    "server_cpus": _cores_of(service.pid),
                    "beside": loads[:place] + loads[place + 1 :],
                    **{recording.name: recording.facts for recording in one.recordings if recording.facts},
                },
            )
            found.append(_contents(service, one, manifest))
        return found


def _source_folder(service: Service, settings: ServerSettings | None) -> Path | None:
    """Where the code under test lies: that of the model, or the working folder of a service that is not ours."""
    if settings is not None:
        return folder_of_model(settings.model)
    return folder_of_process(service.pid) if service.pid is not None else None


def _contents(service: Service, round_: Round, manifest: Manifest) -> RunContents:
    return RunContents(
        manifest=manifest,
        tables={"requests": round_.requests, "batches": round_.batches, "series": series_table(round_.recordings)},
        stacks=_stacks(round_.recordings),
        logs={"server.log": service.log.read_bytes()} if service.log else {},
    )


def _moved(before: ServerSettings | None, after: ServerSettings | None) -> list[str]:
    """A note when somebody changed the settings meanwhile: the figures then belong to no single setting."""
    if before is None or after is None or not (changes := fields.changes(before, after)):
        return []
    texts = [f"{name} {fields.get(before, name)} to {value}" for name, value in changes.items()]
    return [f"settings were changed while this run went on, its figures mix them: {', '.join(texts)}"]


def _cores_of(pid: int | None) -> list[int]:
    """The cores that a process may run on; none when there is no process to ask."""
    try:
        return [] if pid is None else sorted(os.sched_getaffinity(pid))
    except OSError:  # it has just ended
        return []


def _capped(settings: ServerSettings | None, stats: Mapping[str, Any] | None) -> list[str]:
    """A note when the device's memory did not hold batches of the size that was set."""
    if settings is None or stats is None or stats["batch_cap"] >= settings.batch.max_size:
        return []
    cap, most = stats["batch_cap"], settings.batch.max_size
    return [f"at its end a batch held at most {cap} requests, not {most}: the device's memory has no room for more"]


def graphs_grew(stats: Mapping[str, Any] | None) -> bool:
    """Whether the server compiled more graphs than were ready before its workers started."""
    execution = (stats or {}).get("execution") or {}
    ready, now = execution.get("graphs_ready"), execution.get("graphs")
    return ready is not None and now is not None and now > ready


def _executed(stats: Mapping[str, Any] | None) -> list[str]:
    """A note of how far a level of execution is from eager float32, where there is one."""
    execution = (stats or {}).get("execution") or {}
    found = execution.get("difference")
    if found is None:
        return []
    return [
        f"execution.level {execution['level']} in {execution['dtype']} differs from eager float32 by at most "
        f"{found['difference']:.3g}, {found['difference_ratio']:.3g} of the largest output; "
        f"{found['allowed_ratio']:g} of it is allowed"
    ]


def certify(contents: RunContents, varied: Mapping[str, Any], profiled: bool = False) -> RunContents:
    """The same run with its certificate: figures, self-tests, grade."""
    data = run_data(contents, profiled)
    figures = summarise(data).to_json()
    further = (
        step_points(data, figures)
        | set_figures(data, figures)
        | soak_figures(data)
        | _memory(contents.manifest.counters)
        | _sent(contents.manifest)
    )
    certificate = figures | {"varied": dict(varied)} | further
    manifest = dataclasses.replace(contents.manifest, certificate=certificate, varied=dict(varied))
    return dataclasses.replace(contents, manifest=manifest)


def _sent(manifest: Manifest) -> dict[str, Any]:
    """What the generators say of payloads, and of arrivals where they are bursty."""
    first = manifest.generator_reports[0]
    return {name: first[name] for name in ("payloads", "arrivals") if name in first}


def _memory(counters: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """How often the device's memory ran out over all rounds, and the smallest batch cap at the end of one."""
    rounds = [counts["memory"] for counts in counters if "memory" in counts]
    if not rounds:
        return {}
    totals = {name: sum(counts[name] for counts in rounds) for name in ("ooms", "retries")}
    return {"memory": totals | {"batch_cap": min(counts["batch_cap"] for counts in rounds)}}


def save(contents: RunContents, parent: Path) -> Run:
    """Write a certified run under `parent`, in a folder named after its id."""
    return Run(stored=load_run(save_run(parent / contents.manifest.id, contents)))


def run_data(contents: RunContents, profiled: bool = False) -> RunData:
    """What the analysis reads."""
    manifest, tables = contents.manifest, contents.tables
    rounds = list(manifest.rounds)
    return RunData(
        requests=tables["requests"],
        batches=tables["batches"],
        series=tables["series"],
        rounds=rounds,
        gauges=manifest.gauges,
        counters=manifest.counters,
        generator_reports=manifest.generator_reports,
        load=manifest.load,
        settings=manifest.settings or None,
        simulated=manifest.simulated,
        usable_cores=int(manifest.environment["usable_cores"]),
        core_limit=_core_limit(manifest.environment),
        profiled=profiled,
        settings_moved=bool(manifest.further.get("settings_moved")),
        graphs_grew=bool(manifest.further.get("graphs_grew")),
        gpus=manifest.further.get("gpu", {}).get("gpus", ()),
        server_cpus=manifest.further.get("server_cpus", ()),
        environment=manifest.environment,
        goal=_goal(manifest.further.get("until")),
        loads_beside=len(manifest.further.get("beside", ())),
        started_ns=rounds[0]["started_ns"],
        ended_ns=rounds[-1]["ended_ns"],
    )


def _goal(until: Mapping[str, Any] | None) -> Goal | None:
    return Goal(**{**until["goal"], "looks_s": tuple(until["goal"]["looks_s"])}) if until else None


def _core_limit(environment: Mapping[str, Any]) -> float:
    """Cores that the machine gives at most, a quota counted exactly."""
    affinity, quota = float(environment["affinity_cores"]), environment["quota_cores"]
    return affinity if quota is None else min(affinity, float(quota))


def series_table(recordings: Sequence[Recording]) -> DataFrame:
    """All series of a run in long form."""
    import pandas as pd

    rows = [row for recording in recordings for row in recording.series]
    table = pd.DataFrame(rows, columns=["time_ns", "source", "name", "unit", "value"])
    kinds = {"time_ns": "Int64", "source": "str", "name": "str", "unit": "str", "value": "Float64"}
    return table.astype(kinds)


def _manifest(round_: Round, load: Mapping[str, Any]) -> Manifest:
    created = calendar_now()
    return Manifest(
        id=new_id(created),
        created=created,
        simulated=False,
        load=load,
        environment=fingerprint(),
        rounds=[round_.phase],
        gauges=round_.gauges,
        counters=round_.counters,
        generator_reports=[round_.generator_report],
    )


def _stacks(recordings: Sequence[Recording]) -> dict[str, Path | Mapping[str, Any]]:
    import json

    stacks: dict[str, Path | Mapping[str, Any]] = {}
    for recording in recordings:
        for path in recording.files:
            if path.parent.name == "stacks":
                stacks[path.stem] = json.loads(path.read_text("utf-8"))
    return stacks
