"""What did a foreign run folder hold when it was imported? The records again, from its manifest and tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from perfkit.errors import ArchiveError
from perfkit.measuring.analysis.certificate import Entry
from perfkit.measuring.analysis.latency import Quantile
from perfkit.measuring.archive import documents
from perfkit.measuring.archive.folder import StoredRun
from perfkit.measuring.collectors.collector import SeriesRow
from perfkit.measuring.importers.finding import Finding
from perfkit.measuring.importers.foreignrun import ENTRY, FLAME_NAME, ForeignRun
from perfkit.measuring.importers.imported import Imported, Level, Metric, Profile, Requests, Rows, Timing, Weight
from perfkit.records import EndState

if TYPE_CHECKING:
    from pandas import DataFrame

_NUMBERS = ("_s", "_rps")


def open_import(run: StoredRun) -> ForeignRun:
    """A foreign run as it was imported; raises ArchiveError where its manifest is not of perfkit's making."""
    try:
        return _foreign_run(run, dict(run.manifest.further[ENTRY]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ArchiveError(f"{run.path} holds no import that perfkit wrote ({error}); import the file again") from error


def _foreign_run(run: StoredRun, document: dict[str, Any]) -> ForeignRun:
    findings = tuple(Finding(**finding) for finding in document.pop("findings"))
    imported = Imported(
        path=str(document["path"]),
        format=str(document["format"]),
        rows=Rows(**document["rows"]),
        timing=Timing(**document["timing"]),
        levels=tuple(map(_level, document["levels"])),
        profiles=tuple(map(_profile, document["profiles"])),
        metrics=tuple(Metric(**metric) for metric in document["metrics"]),
        series=_series(run),
        requests=_requests(run.table("requests"), int(document["stride"])) if "requests" in run.tables else None,
        is_range=bool(document["is_range"]),
        notes=tuple(map(str, document["notes"])),
    )
    return ForeignRun(imported=imported, findings=findings, flame=_flame(run))


def _level(document: Mapping[str, Any]) -> Level:
    known = dict(document)
    for name, value in known.items():
        if name.endswith(_NUMBERS) and not isinstance(value, (int, float, type(None), dict)):
            raise ValueError(f"{name} is {value!r:.40}")
    percentiles = {_p_of(name): float(value) for name, value in known.pop("percentiles_s").items()}
    quantiles = {_p_of(name): Quantile(**found) for name, found in known.pop("quantiles").items()}
    reasons = tuple(map(str, known.pop("reasons")))
    entries = tuple(Entry(**entry) for entry in known.pop("entries", ()))
    return Level(**known, percentiles_s=percentiles, quantiles=quantiles, reasons=reasons, entries=entries)


def _p_of(name: str) -> float:
    """p99.9 -> 0.999."""
    return round(float(name.removeprefix("p")) / 100, 8)


def _profile(document: Mapping[str, Any]) -> Profile:
    known = dict(document)
    return Profile(**{**known, "top": tuple(Weight(**weight) for weight in known["top"])})


def _series(run: StoredRun) -> tuple[SeriesRow, ...]:
    if "series" not in run.tables:
        return ()
    return tuple(map(SeriesRow._make, run.table("series").itertuples(index=False)))


def _requests(table: DataFrame, stride: int) -> Requests:
    start = next(table[name] for name in ("scheduled_ns", "sent_ns") if table[name].notna().all())
    start_ns = start.to_numpy(np.int64)
    names = table["name"].astype("category")
    return Requests(
        start_ns=start_ns,
        latency_ns=table["received_ns"].to_numpy(np.int64) - start_ns,
        is_error=(table["end_state"] != EndState.OK.label).to_numpy(bool),
        name=np.asarray(names.cat.codes, dtype=np.uint16),
        names=tuple(map(str, names.cat.categories)),
        stride=stride,
    )


def _flame(run: StoredRun) -> dict[str, Any] | None:
    if FLAME_NAME not in run.logs:
        return None
    return documents.decode(run.read(f"logs/{FLAME_NAME}"), run.path / "logs" / FLAME_NAME)
