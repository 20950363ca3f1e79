"""How does an imported file become a run folder that every other tool of perfkit opens, and how is it read back?

The manifest is marked by its entry `foreign`: what the file says, level by level, and what the audit found in
it. What the file does not tell stays null. Single requests go into `requests.parquet`, values over time into
`series.parquet`, levels as a table into `logs/levels.csv`, paths of calls into `logs/flame.json`. Only a file
of single requests has a certificate: a summary can be given neither intervals nor a grade.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfkit.clock import calendar_now
from perfkit.measuring.analysis.certificate import Certificate
from perfkit.measuring.archive import documents
from perfkit.measuring.archive.folder import RunContents, StoredRun, load_run, save_run
from perfkit.measuring.archive.manifest import Manifest, new_id
from perfkit.measuring.importers.audit import audit
from perfkit.measuring.importers.certificate import unseen
from perfkit.measuring.importers.finding import Finding
from perfkit.measuring.importers.flame import foreign_flame
from perfkit.measuring.importers.frames import levels_frame
from perfkit.measuring.importers.imported import Imported, Level, Requests, percent_name
from perfkit.records import EndState

if TYPE_CHECKING:
    from pandas import DataFrame

ENTRY = "foreign"
LEVELS_NAME, FLAME_NAME = "levels.csv", "flame.json"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ForeignRun:
    """An imported file with what was found in it; `flame` as flame.js draws it, None where there are no stacks."""

    imported: Imported
    findings: tuple[Finding, ...]
    flame: Mapping[str, Any] | None


def judged(imported: Imported) -> ForeignRun:
    """A file with its audit and its flame graph."""
    flame = foreign_flame(imported.profiles, Path(imported.path).name)
    return ForeignRun(imported=imported, findings=tuple(audit(imported)), flame=flame)


def save_import(parent: Path, run: ForeignRun) -> StoredRun:
    """Writes a run folder of its own below `parent`; raises ArchiveError when the disk refuses."""
    contents = contents_of(run)
    while (folder := parent / contents.manifest.id).exists():  # many files in one second
        manifest = dataclasses.replace(contents.manifest, id=new_id(contents.manifest.created))
        contents = dataclasses.replace(contents, manifest=manifest)
    return load_run(save_run(folder, contents))


def contents_of(run: ForeignRun) -> RunContents:
    """The run folder's contents."""
    imported = run.imported
    created = calendar_now()
    title = Path(imported.path).name
    document = imported.to_json()
    del document["series"]  # they are a table
    document["stride"] = imported.requests.stride if imported.requests is not None else None
    manifest = Manifest(
        id=new_id(created),
        created=created,
        simulated=False,
        title=title,
        load=_load_of(imported.levels[0]) if imported.levels else {},
        certificate=point_of(imported),
        notes=imported.notes,
        further={ENTRY: {**document, "findings": [dataclasses.asdict(finding) for finding in run.findings]}},
    )
    logs: dict[str, str | bytes] = {}
    if imported.levels:
        logs[LEVELS_NAME] = levels_frame(imported).to_csv(index=False)
    if run.flame:
        logs[FLAME_NAME] = documents.encode(run.flame, f"the flame graph of {title}")
    return RunContents(manifest=manifest, tables=_tables(imported), logs=logs)


def is_foreign(manifest: Manifest) -> bool:
    """Whether a run was measured by another tool."""
    return isinstance(manifest.further.get(ENTRY), Mapping)


def point_of(imported: Imported) -> dict[str, Any] | None:
    """All requests as a run's own point, with their certificate; None of a summary."""
    whole = imported.levels[0] if imported.levels else None
    if whole is None or whole.grade is None:
        return None
    rate = None if whole.throughput_rps is None else float(whole.throughput_rps)
    return {
        "settings": {},
        "varied": {},
        "load": _load_of(whole),
        "requests": whole.requests,
        "errors": {EndState.FAILED.label: whole.errors} if whole.errors else {},
        "throughput_rps": {"value": rate, "low": None, "high": None},
        "latency_s": {percent_name(p): found.to_json() for p, found in whole.quantiles.items()},
        "stages_s": {},
        **dict.fromkeys(("batch_fill_ratio", "in_flight_mean", "little_residual_ratio", "cpu_cores_used")),
        "generator": dict.fromkeys(("lateness_p99_s", "cpu_ratio")),
        "grade": whole.grade,
        "valid": whole.grade != "void",
        "reasons": list(whole.reasons),
        "certificate": Certificate(entries=(*whole.entries, *unseen(imported.timing.basis))).to_json(),
    }


def _load_of(level: Level) -> dict[str, Any]:
    known = {"loop": level.loop, "concurrency": level.concurrency, "rate_rps": level.offered_rps}
    return {name: value for name, value in known.items() if value is not None}


def _tables(imported: Imported) -> dict[str, DataFrame]:
    import pandas

    tables = {}
    if imported.requests is not None:
        tables["requests"] = _requests_table(imported.requests, imported.timing.basis == "scheduled")
    if imported.series:
        tables["series"] = pandas.DataFrame(imported.series, columns=["time_ns", "source", "name", "unit", "value"])
    return tables


def _requests_table(requests: Requests, is_scheduled: bool) -> DataFrame:
    """One row a request; its start is an instant of the schedule where the file says so, else of the send."""
    import numpy as np
    import pandas

    states = [EndState.OK.label, EndState.FAILED.label]
    start = "scheduled_ns" if is_scheduled else "sent_ns"
    return pandas.DataFrame(
        {
            "request_id": np.arange(len(requests.start_ns)),
            "end_state": pandas.Categorical.from_codes(requests.is_error.astype(np.int8), pandas.Index(states)),
            start: requests.start_ns,
            "received_ns": requests.start_ns + requests.latency_ns,
            "name": pandas.Categorical.from_codes(requests.name.astype(np.int32), pandas.Index(requests.names)),
        },
        copy=False,
    )
