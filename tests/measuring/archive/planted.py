"""What does a run look like whose every figure is known? A planted example, not a measurement."""

from __future__ import annotations

import pandas

from perfkit.measuring.archive.folder import RunContents
from perfkit.measuring.archive.format import BATCHES, REQUESTS, SERIES
from perfkit.measuring.archive.manifest import Manifest
from perfkit.records import BATCH_INSTANTS, INSTANTS, STAGE_ENDS, STAGES

TITLE = "planted example, not a measurement"
MS = 1_000_000
START_NS = 5_000_000_000
ROUND_NS = 1_000_000_000
STAGE_NS = {stage: (index + 1) * 100_000 for index, stage in enumerate(STAGES)}
HANDOVERS = {
    "preprocess_queued": "parsed",
    "model_queued": "preprocess_ended",
    "d2h_started": "compute_ended",
    "postprocess_queued": "woken",
}
"""A hand-over instant lies where the stage around it starts."""


def planted_contents(rounds: int = 2, first_round: int = 0) -> RunContents:
    """Three requests a round: two that end well in one batch, one that was rejected."""
    indices = range(first_round, first_round + rounds)
    requests = [row for index in indices for row in _requests(index)]
    return RunContents(
        manifest=_manifest(list(indices)),
        tables={
            "requests": _frame(REQUESTS.columns, requests),
            "batches": _frame(BATCHES.columns, [_batch(index) for index in indices]),
            "series": _frame(SERIES.columns, [row for index in indices for row in _series(index)]),
        },
        stacks={"default": _stacks()},
        logs={"server.log": "planted example: ready\n"},
    )


def _life(scheduled_ns: int) -> dict[str, int]:
    instants, now_ns = {"scheduled": scheduled_ns}, scheduled_ns
    for stage, end in STAGE_ENDS.items():
        now_ns += STAGE_NS[stage]
        instants[end] = now_ns
    for handover, boundary in HANDOVERS.items():
        instants[handover] = instants[boundary]
    return {instant: instants[instant] for instant in INSTANTS}


def _requests(index: int) -> list[dict[str, object]]:
    start_ns = START_NS + 2 * index * ROUND_NS
    rows: list[dict[str, object]] = []
    for number in range(3):
        is_rejected = number == 2
        life = _life(start_ns + number * 10 * MS)
        if is_rejected:
            kept = ("scheduled", "sent", "accepted", "parsed", "replied", "received")
            life = {instant: life[instant] for instant in kept}
        row: dict[str, object] = {f"{instant}_ns": value for instant, value in life.items()}
        row |= {"request_id": 100 * index + number, "round": index, "payload": number, "bytes_out": 200, "bytes_in": 90}
        row |= {"end_state": "rejected", "status": 503, "error": "queue_full"} if is_rejected else _ended_well(index)
        rows.append(row)
    return rows


def _ended_well(index: int) -> dict[str, object]:
    return {
        "end_state": "ok",
        "status": 200,
        "error": "",
        "batch_id": index + 1,
        "preprocess_thread": 11,
        "model_thread": 11,
        "postprocess_thread": 11,
        "preprocess_cpu_ns": 400_000,
        "postprocess_cpu_ns": 300_000,
        "clamped_ns": 0,
    }


def _batch(index: int) -> dict[str, object]:
    life = _life(START_NS + 2 * index * ROUND_NS)
    row: dict[str, object] = {f"{instant}_ns": life[instant] for instant in BATCH_INSTANTS}
    facts = {"batch_id": index + 1, "round": index, "model_thread": 11, "size": 2, "units": 2, "padded_units": 2}
    return row | facts | {"cpu_ns": 900_000, "clamped_ns": 0, "worker_free_ns": life["model_queued"]}


def _series(index: int) -> list[dict[str, object]]:
    start_ns = START_NS + 2 * index * ROUND_NS
    return [
        {"time_ns": start_ns, "source": "process", "name": "rss", "unit": "bytes", "value": 1e8},
        {"time_ns": start_ns, "source": "thread:11:worker-0", "name": "cpu", "unit": "s", "value": 0.5 + index},
        {"time_ns": start_ns + ROUND_NS, "source": "host", "name": "psi_cpu", "unit": "s", "value": None},
    ]


def _frame(columns: dict[str, str], rows: list[dict[str, object]]) -> pandas.DataFrame:
    kinds = {"integer": "Int64", "number": "float64", "text": "str"}
    return pandas.DataFrame(rows, columns=list(columns)).astype({name: kinds[kind] for name, kind in columns.items()})


def _manifest(indices: list[int]) -> Manifest:
    return Manifest(
        id="20250101-000000-abcd",
        created="2025-01-01T00:00:00+00:00",
        simulated=True,
        title=TITLE,
        settings={"model": "simulated:planted", "workers": 1, "batch": {"max_size": 2, "max_delay_s": 0.0}},
        load={"loop": "closed", "concurrency": 3, "seconds": 1.0},
        varied={"workers": 1},
        environment={"cores": 2},
        certificate=_certificate(indices),
        rounds=[_round(index) for index in indices],
        gauges=[_gauge(index, ending) for index in indices for ending in (False, True)],
        counters=[_counters(index) for index in indices],
        generator_reports=[_report(index) for index in indices],
        notes=["planted: no collector ran"],
    )


def _round(index: int) -> dict[str, int]:
    start_ns = START_NS + 2 * index * ROUND_NS
    return {"index": index, "started_ns": start_ns, "ended_ns": start_ns + ROUND_NS}


def _gauge(index: int, ending: bool) -> dict[str, int]:
    time_ns = START_NS + 2 * index * ROUND_NS + (ROUND_NS if ending else 0)
    area_ns = (index + ending) * 40 * MS
    return {"time_ns": time_ns, "round": index, "in_flight": 0, "area_ns": area_ns, "queued": 0}


def _counters(index: int) -> dict[str, object]:
    before = {"accepted": 3 * index, "ok": 2 * index, "rejected": index, "ledger_rows": 3 * index, "ledger_dropped": 0}
    after = {name: value + {"ok": 2, "rejected": 1, "ledger_dropped": 0}.get(name, 3) for name, value in before.items()}
    return {"round": index, "before": before, "after": after}


def _report(index: int) -> dict[str, object]:
    lateness = {"lateness_p50_s": 1e-4, "lateness_p99_s": 1e-4, "lateness_max_s": 1e-4}
    times = {name: value for name, value in _round(index).items() if name != "index"}
    counts = {"round": index, "scheduled": 3, "sent": 3, "errors": {}}
    return counts | lateness | {"cpu_s": 0.01, "wall_s": 1.0, "cpu_ratio": 0.005} | times


def _certificate(indices: list[int]) -> dict[str, object]:
    count = 2 * len(indices)
    latency_s = sum(STAGE_NS.values()) / 1e9
    absent = {"value": None, "low": None, "high": None, "n": count, "n_eff": count, "needs_s": None}
    return {
        "requests": 3 * len(indices),
        "errors": {"queue_full": len(indices)},
        "throughput_rps": {"value": 2.0, "low": None, "high": None},
        "latency_s": {"p50": absent | {"value": latency_s}, "p95": absent, "p99": absent},
        "stages_s": {stage: length_ns / 1e9 for stage, length_ns in STAGE_NS.items()},
        "grade": "short",
        "valid": True,
        "reasons": [TITLE],
        "simulated": True,
    }


def _stacks() -> dict[str, object]:
    return {
        "schema": 1,
        "mode": "default",
        "rate_hz": 100,
        "seconds": 0.04,
        "sample_count": 4,
        "error_count": 0,
        "profiler_cpu_s": 0.001,
        "threads": [{"id": 11, "name": "worker-0"}],
        "frames": [
            {"name": "run", "file": "planted.py", "line": 1},
            {"name": "predict", "file": "planted.py", "line": 2},
        ],
        "stacks": [[0], [0, 1]],
        "samples": {"time_ns": [START_NS + n * 10 * MS for n in range(4)], "thread": [0] * 4, "stack": [0, 1, 1, 1]},
    }
