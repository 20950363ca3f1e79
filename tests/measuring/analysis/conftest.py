"""Seeded queues in virtual time, turned into the tables that the archive would hold."""

from __future__ import annotations

import dataclasses
import heapq
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from perfkit.measuring.analysis.rundata import RunData
from perfkit.records import BATCH_INSTANTS, INSTANTS

START_NS = 7_000_000_000_000_000  # 81 days of uptime: float64 still holds each nanosecond, float32 would not
STEP_NS = 10_000  # every stage that the queue does not model takes 10 µs


@dataclasses.dataclass
class Served:
    """One request: when it reached the queue, its batch, and that batch's span on a worker (seconds)."""

    arrived_s: float
    free_s: float = 0.0
    start_s: float = 0.0
    end_s: float = 0.0
    batch: int = 0
    size: int = 1
    worker: int = 0


def serve_closed(
    users: int, workers: int, batch: int, seconds: float, service: Callable[[int], float], think: Callable[[], float]
) -> list[Served]:
    """Users in a loop before a FIFO queue; an idle worker takes what waits, at most `batch`."""
    events: list[tuple[float, int, int, list[Served]]] = [(think(), 0, user, []) for user in range(users)]
    heapq.heapify(events)
    free = [(0.0, worker) for worker in range(workers)]
    waiting: list[Served] = []
    done: list[Served] = []
    tick = users
    while events:
        now, kind, _, finished = heapq.heappop(events)
        if kind == 0 and now <= seconds:
            waiting.append(Served(arrived_s=now))
        for _ in finished:
            tick += 1
            heapq.heappush(events, (now + think(), 0, tick, []))
        done += finished
        if finished:
            free.append((now, finished[0].worker))
        if events and events[0][0] <= now:
            continue  # whoever arrives in this very instant joins the same batch
        while free and waiting:
            since, worker = free.pop(0)
            members, waiting = waiting[:batch], waiting[batch:]
            end = now + service(len(members))
            tick += 1
            for one in members:
                one.free_s, one.start_s, one.end_s, one.batch, one.size, one.worker = (
                    since,
                    now,
                    end,
                    tick,
                    len(members),
                    worker,
                )
            heapq.heappush(events, (end, 1, tick, members))
    return sorted(done, key=lambda one: one.arrived_s)


def serve_open(arrivals_s: Sequence[float], workers: int, batch: int, service: Callable[[int], float]) -> list[Served]:
    """Scheduled arrivals before the same queue."""
    free = [(0.0, worker) for worker in range(workers)]
    heapq.heapify(free)
    done: list[Served] = []
    index = number = 0
    while index < len(arrivals_s):
        since, worker = heapq.heappop(free)
        start = max(since, arrivals_s[index])
        size = 1
        while size < batch and index + size < len(arrivals_s) and arrivals_s[index + size] <= start:
            size += 1
        end = start + service(size)
        number += 1
        for arrived in arrivals_s[index : index + size]:
            done.append(Served(arrived, since, start, end, number, size, worker))
        heapq.heappush(free, (end, worker))
        index += size
    return done


@dataclasses.dataclass
class Scenario:
    """What to simulate; `scale` stretches the service time as a function of a round's number."""

    seed: int = 0
    rounds: int = 3
    seconds: float = 3.0
    users: int = 16
    rate_rps: float | None = None
    workers: int = 1
    batch: int = 1
    mean_s: float = 0.01
    per_item_s: float = 0.0
    shape: str = "exponential"
    think_s: float = 0.0
    scale: Callable[[int], float] = lambda number: 1.0

    def service(self, rng: np.random.Generator, number: int) -> Callable[[int], float]:
        draw = {
            "exponential": lambda: 0.01 + rng.exponential(0.99),  # the fixed steps of a row need 50 µs
            "normal": lambda: max(0.1, rng.normal(1.0, 0.1)),
            "constant": lambda: 1.0,
        }[self.shape]
        return lambda size: self.scale(number) * draw() * (self.mean_s + self.per_item_s * (size - 1))

    def play(self, rng: np.random.Generator, number: int) -> list[Served]:
        service = self.service(rng, number)
        if self.rate_rps is None:
            return serve_closed(self.users, self.workers, self.batch, self.seconds, service, lambda: self.think_s)
        arrivals = np.cumsum(rng.exponential(1 / self.rate_rps, int(self.rate_rps * self.seconds * 2) + 50))
        return serve_open(arrivals[arrivals < self.seconds].tolist(), self.workers, self.batch, service)

    @property
    def load(self) -> dict[str, Any]:
        if self.rate_rps is None:
            return {"loop": "closed", "concurrency": self.users, "think_time_s": self.think_s}
        return {"loop": "open", "rate_rps": self.rate_rps, "arrivals": "poisson"}

    def run(self) -> RunData:
        """The run as its tables."""
        rng = np.random.default_rng(self.seed)
        spans, requests, batches = [], [], []
        for number in range(self.rounds):
            base_ns = START_NS + int(number * (self.seconds + 5) * 1e9)
            spans.append({"index": number, "started_ns": base_ns, "ended_ns": base_ns + int(self.seconds * 1e9)})
            served = self.play(rng, number)
            rows = [_request_row(one, number, base_ns) for one in served]
            requests += rows
            batches += _batch_rows(served, rows, number, base_ns)
        for request_id, row in enumerate(requests):
            row["request_id"] = request_id
        return _run_data(self, spans, requests, batches)


def _request_row(one: Served, number: int, base_ns: int) -> dict[str, Any]:
    arrived, start, end = (base_ns + round(at * 1e9) for at in (one.arrived_s, one.start_s, one.end_s))
    at = dict.fromkeys(INSTANTS)
    # The client's and the parser's steps lie before the queue, so the schedule is earlier than the arrival.
    for back, name in enumerate(("model_queued", "parsed", "accepted", "sent", "scheduled")):
        at[name] = arrived - back * STEP_NS
    at["batch_joined"] = max(arrived, base_ns + round(one.free_s * 1e9))
    at["batch_sealed"] = at["collated"] = at["h2d_started"] = at["h2d_ended"] = at["compute_started"] = start
    at["compute_ended"] = at["d2h_ended"] = end - 4 * STEP_NS
    for back, name in enumerate(("received", "replied", "serialised", "postprocess_ended", "woken")):
        at[name] = end - back * STEP_NS
    at["postprocess_started"] = at["woken"]
    row = {f"{name}_ns": value for name, value in at.items()}
    return row | {
        "round": number,
        "end_state": "ok",
        "status": 200,
        "error": "",
        "batch_id": number * 1_000_000 + one.batch,
    }


def _batch_rows(
    served: Sequence[Served], rows: Sequence[dict[str, Any]], number: int, base_ns: int
) -> list[dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    for one, row in zip(served, rows, strict=True):
        fresh = {f"{name}_ns": row[f"{name}_ns"] for name in BATCH_INSTANTS}
        fresh |= {"batch_id": row["batch_id"], "round": number, "model_thread": 100 + one.worker, "size": one.size}
        fresh |= {
            "units": 8 * one.size,
            "padded_units": 10 * one.size,
            "worker_free_ns": base_ns + round(one.free_s * 1e9),
        }
        found.setdefault(row["batch_id"], fresh | {"cpu_ns": 0, "clamped_ns": 0})
    return list(found.values())


def _nullable(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    table = pd.DataFrame(rows)
    texts = ("end_state", "error")
    return table.astype({name: "Int64" for name in table.columns if name not in texts})


def _gauges(requests: pd.DataFrame, spans: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The integral of the requests in the server, read 1 ms before each round and 4 s after it."""
    accepted, replied = (requests[f"{name}_ns"].to_numpy(dtype=np.int64) for name in ("accepted", "replied"))
    readings = []
    for span in spans:
        for at in (span["started_ns"] - 1_000_000, span["ended_ns"] + 4_000_000_000):
            area = int((np.clip(replied, None, at) - np.clip(accepted, None, at)).sum())
            inside = int(((accepted <= at) & (replied > at)).sum())
            readings.append({"time_ns": at, "round": span["index"], "in_flight": inside, "area_ns": area, "queued": 0})
    return readings


def _run_data(
    scenario: Scenario, spans: list[dict[str, Any]], requests: list[dict[str, Any]], batches: list[dict[str, Any]]
) -> RunData:
    table = _nullable(requests)
    states = ("ok", "rejected", "expired", "cancelled", "refused", "failed")
    totals = [int((table["round"] == span["index"]).sum()) for span in spans]
    zero = {"accepted": 0, "ledger_rows": 0, "ledger_dropped": 0} | dict.fromkeys(states, 0)
    counters = [
        {"round": span["index"], "before": zero, "after": zero | {"accepted": total, "ok": total, "ledger_rows": total}}
        for span, total in zip(spans, totals, strict=True)
    ]
    report = {"lateness_p50_s": 1e-5, "lateness_p99_s": 1e-5, "lateness_max_s": 1e-5, "cpu_s": 0.1, "errors": {}}
    reports = [
        report
        | {"round": span["index"], "scheduled": total, "sent": total, "wall_s": scenario.seconds}
        | {"cpu_ratio": 0.1 / scenario.seconds / 2, "started_ns": span["started_ns"], "ended_ns": span["ended_ns"]}
        for span, total in zip(spans, totals, strict=True)
    ]
    return RunData(
        requests=table,
        batches=_nullable(batches),
        series=pd.DataFrame({"time_ns": [], "source": [], "name": [], "unit": [], "value": []}),
        rounds=spans,
        gauges=_gauges(table, spans),
        counters=counters,
        generator_reports=reports,
        load=scenario.load,
        settings={
            "model": "module:Queue",
            "device": "cpu",
            "workers": scenario.workers,
            "batch": {"max_size": scenario.batch},
        },
        simulated=False,
        usable_cores=2,
        profiled=False,
        started_ns=spans[0]["started_ns"],
        ended_ns=spans[-1]["ended_ns"],
    )


@pytest.fixture(scope="session")
def scenario() -> type[Scenario]:
    """The builder of simulated runs."""
    return Scenario


@pytest.fixture(scope="session")
def healthy_run() -> RunData:
    """A steady closed loop: 16 users, one worker, three rounds of three seconds."""
    return Scenario(seed=1, shape="normal", workers=1).run()


@pytest.fixture(scope="session")
def healthy_open_run() -> RunData:
    """A steady open loop at 60 % of one worker's capacity."""
    return Scenario(seed=2, shape="normal", rate_rps=60.0, seconds=10.0).run()
