"""Which runs are as long as the longest that anybody measures? Planted figures, not measurements."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pandas

from perfkit.measuring.archive.folder import RunContents, save_run
from perfkit.measuring.archive.manifest import Manifest
from perfkit.measuring.archive.scanfolder import create_scan
from perfkit.measuring.archive.storedscan import ScanHeader
from perfkit.records import CLIENT_INSTANTS, INSTANTS

RATE_RPS = 10_000.0
START_NS = 5_000_000_000
CREATED = "2026-01-01T00:00:00+00:00"


def requests(count: int, instants: tuple[str, ...], seed: int) -> pandas.DataFrame:
    """Rows of an open loop, all good replies, with a random gap between neighbouring instants."""
    chance = np.random.default_rng(seed)
    gaps_ns = np.maximum(1, chance.exponential(1e9 / RATE_RPS, count)).astype(np.int64)
    at_ns = START_NS + np.cumsum(gaps_ns)
    columns = {"request_id": np.arange(count), "round": 0, "end_state": "ok", "status": 200, "error": ""}
    for name in instants:
        columns[f"{name}_ns"] = at_ns
        at_ns = at_ns + chance.gamma(2.0, 20_000, count).astype(np.int64)
    return pandas.DataFrame(columns)


def contents(count: int, instants: tuple[str, ...], seed: int) -> RunContents:
    """A run of so many requests, with no other table."""
    table = requests(count, instants, seed)
    ended_ns = int(table["received_ns"].max())
    manifest = Manifest(
        id=f"planted-{seed}",
        created=CREATED,
        simulated=True,
        title="planted, not a measurement",
        load={"loop": "open", "rate_rps": RATE_RPS, "seconds": count / RATE_RPS},
        environment={"usable_cores": 2, "affinity_cores": 2, "quota_cores": None},
        rounds=[{"index": 0, "started_ns": START_NS, "ended_ns": ended_ns}],
    )
    return RunContents(manifest=manifest, tables={"requests": table})


def save_long_run(folder: Path, count: int) -> Path:
    """One run that knows the client's half of each request, as of a service that is not ours."""
    return save_run(folder, contents(count, CLIENT_INSTANTS, 0))


def save_long_scan(folder: Path, points: int, count: int) -> Path:
    """A finished scan of so many points, each of so many requests with their whole ledger."""
    plan = {"points": [{"settings": {"workers": place + 1}} for place in range(points)], "order": [[*range(points)]]}
    header = ScanHeader(id="planted", created=CREATED, simulated=True, plan=plan)
    with create_scan(folder, header) as scan:
        for part in scan.pending_parts():
            made = contents(count, INSTANTS, part.point)
            manifest = dataclasses.replace(made.manifest, varied={"workers": part.point + 1})
            scan.save_part(part, dataclasses.replace(made, manifest=manifest))
        scan.finish([{"varied": {"workers": place + 1}, "grade": "sound", "reasons": []} for place in range(points)])
    return folder
