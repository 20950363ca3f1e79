"""How do a run's tables leave the archive: as CSV, as Parquet, as one JSON document?"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from perfkit.measuring.archive import documents, durable
from perfkit.measuring.archive.format import TABLES
from perfkit.measuring.archive.tables import read_arrow, write_table
from perfkit.measuring.exporting.subject import Subject

POINT = "point"
"""The first column of a scan's or comparison's tables: which point a row belongs to."""


def write_csv(subject: Subject, folder: Path) -> list[Path]:
    """`requests.csv`, `batches.csv`, `series.csv` and `points.csv`; absent values are empty. Raises ArchiveError."""
    from pyarrow import csv

    return _write_tables(subject, folder, ".csv", csv.write_csv)


def write_parquet(subject: Subject, folder: Path) -> list[Path]:
    """The same tables as Parquet, points below each other. Raises ArchiveError."""

    def write(table: Any, path: Path) -> None:
        with open(path, "xb") as file:
            write_table(table, file)

    return _write_tables(subject, folder, ".parquet", write)


def write_json(subject: Subject, path: Path) -> list[Path]:
    """One document: entry, points, manifests, and the tables by column. Raises ArchiveError."""
    entry = dataclasses.asdict(subject.entry)
    document = {
        "schema": 1,
        "simulated": subject.entry.simulated,
        "run": entry | {"path": str(subject.entry.path)},
        "points": list(subject.points),
        "manifests": [dataclasses.asdict(run.manifest) for run in subject.runs],
        "tables": {name: table.to_pydict() for name, table in tables_of(subject)},
    }
    durable.replace_file(path, documents.encode(document, f"the export of {subject.entry.id}"))
    return [path]


def tables_of(subject: Subject) -> Iterator[tuple[str, Any]]:
    """Every table as Arrow, one after the other; points below each other with their number in front."""
    import pyarrow

    for name, form in TABLES.items():
        parts = []
        for number, run in zip(subject.numbers, subject.runs, strict=True):
            if name not in run.tables:
                continue
            part = read_arrow(pyarrow.BufferReader(run.read(form.file_name)), run.path / form.file_name)
            if subject.has_points:
                part = part.add_column(0, POINT, pyarrow.array([number] * len(part), pyarrow.int64()))
            parts.append(part)
        if parts:
            yield name, pyarrow.concat_tables(parts, promote_options="permissive")


def flatten(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Each plain value of nested objects by its dotted name; lists are left out."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f"{prefix}{name}.")
        elif not isinstance(value, list | tuple):
            yield f"{prefix}{name}", value


def _write_tables(subject: Subject, folder: Path, suffix: str, write: Callable[[Any, Path], None]) -> list[Path]:
    with durable.new_folder(folder, lambda: subject.entry.bytes) as temporary:
        for name, table in tables_of(subject):
            write(table, temporary / f"{name}{suffix}")
        write(_points(subject), temporary / f"points{suffix}")
    return sorted(folder.iterdir())


def _points(subject: Subject) -> Any:
    """One row a point: what was varied, every figure with its interval, the grade."""
    import pandas
    import pyarrow

    rows = [
        {POINT: number, **dict(flatten(point)), "reasons": "; ".join(point.get("reasons", ()))}
        for number, point in zip(subject.numbers, subject.points, strict=True)
    ]
    frame = pandas.DataFrame(rows).dropna(axis="columns", how="all")
    mixed = [name for name in frame.columns if frame[name].map(type).nunique() > 1 and frame[name].dtype == object]
    return pyarrow.Table.from_pandas(frame.astype(dict.fromkeys(mixed, str)), preserve_index=False)
