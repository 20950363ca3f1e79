"""Which tables does an archived run hold, with which columns, and which versions can be read?

History of the run folder's format (`schema` in `run.json`, `scan.json` and `comparison.json`):

1   First version. `run.json` is the manifest, with size and SHA-256 of every other file. Tables are
    `requests.parquet` (one row a request, every instant in `_ns`), `batches.parquet` and
    `series.parquet` (long form: time, source, name, unit, value). `stacks/*.json` are the profiler's
    recordings, `logs/` holds what the processes printed. Null is absent. The pair (round, request_id)
    names a request, (round, batch_id) a batch. Columns and manifest entries that this version does
    not know are kept as they came. Added without a new number, absent in older runs: `source`, the git
    state of the code under test; `pinned.txt` beside a manifest; `id` and `created` of a comparison.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from perfkit.records import BATCH_INSTANTS, INSTANTS

FORMAT_VERSION = 1
READABLE_VERSIONS = (1,)

MANIFEST_NAME = "run.json"
SCAN_NAME = "scan.json"
COMPARISON_NAME = "comparison.json"
DEMO_NAME = "demo.json"  # says which scans and runs beside it are one demo
PIN_NAME = "pinned.txt"  # beside a manifest: pruning leaves the folder alone; no part of what was measured
PAGE_NAME = "report.html"  # where perfkit report puts a run's page: made from the run, no part of it either
INDEX_NAME = "index.sqlite"  # beside run folders: spares reading them all; never the truth

MEMBER_NAME = re.compile(
    r"(requests|batches|series)\.parquet"
    r"|stacks/[A-Za-z0-9][A-Za-z0-9_.-]{0,127}\.json"
    r"|logs/[A-Za-z0-9][A-Za-z0-9_.-]{0,127}"
)
"""The only names that a file of a run may have, the manifest aside: no path leads out of the folder."""

Kind = Literal["integer", "number", "text"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFormat:
    """One table: the columns that it always has, and those of them that are never null."""

    name: str
    keys: tuple[str, ...]
    columns: Mapping[str, Kind]

    @property
    def file_name(self) -> str:
        """The table's file in a run folder."""
        return f"{self.name}.parquet"


def _integers(*names: str) -> dict[str, Kind]:
    return dict.fromkeys(names, "integer")


def _texts(*names: str) -> dict[str, Kind]:
    return dict.fromkeys(names, "text")


REQUESTS = TableFormat(
    name="requests",
    keys=("request_id", "end_state"),
    columns={
        **_integers("request_id", "round", "payload"),
        **_texts("end_state"),
        **_integers("status"),
        **_texts("error"),
        **_integers("batch_id", "bytes_out", "bytes_in"),
        **_integers(*(f"{instant}_ns" for instant in INSTANTS)),
        **_integers("preprocess_thread", "model_thread", "postprocess_thread"),
        **_integers("preprocess_cpu_ns", "postprocess_cpu_ns", "clamped_ns"),
    },
)
BATCHES = TableFormat(
    name="batches",
    keys=("batch_id",),
    columns={
        **_integers("batch_id", "round", "model_thread", "size", "units", "padded_units"),
        **_integers("cpu_ns", "clamped_ns", "worker_free_ns"),
        **_integers(*(f"{instant}_ns" for instant in BATCH_INSTANTS)),
    },
)
SERIES = TableFormat(
    name="series",
    keys=("time_ns", "source", "name"),
    columns={**_integers("time_ns"), **_texts("source", "name", "unit"), "value": "number"},
)

TABLES: dict[str, TableFormat] = {table.name: table for table in (REQUESTS, BATCHES, SERIES)}
