"""R3: is work whose deadline has passed dropped before the model sees it, and is the client told soon?

Requests with random deadlines of 0 to 200 ms. A real process serves them over sockets; its model writes down whom it
saw, and its ledger tells when. `test_virtual_time.py` asks the same in virtual time, where every figure is exact.
Target: 0 expired reach predict; P99 of the overshoot at most one batch + 10 ms.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pandas
import pyarrow
import pytest

TARGET = "0 expired reach predict, overshoot P99 at most one batch + 10 ms"
BATCH, LONGEST_S = 8, 0.2
CLIENTS = 128  # so many that many deadlines pass


class Clients:
    """Closed-loop clients on keep-alive connections: each request is a number with a random deadline."""

    def __init__(self, port, requests):
        self._port = port
        self._numbers = iter(range(1, requests + 1))
        self._chance = random.Random(requests)
        self.deadline_ns = {}  # number -> from accepted on
        self.statuses = Counter()

    async def run(self):
        await asyncio.gather(*(self._one() for _ in range(CLIENTS)))

    async def _one(self):
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        for number in self._numbers:
            text = f"{self._chance.uniform(0, LONGEST_S):.6f}"
            self.deadline_ns[number] = round(float(text) * 1e9)
            body = b'{"input":%d}' % number
            head = (
                f"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
                f"Perfkit-Id: {number}\r\nPerfkit-Deadline: {text}\r\n\r\n"
            )
            writer.write(head.encode() + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            self.statuses[int(answer[9:12])] += 1
            length = next(line for line in answer.split(b"\r\n") if line.lower().startswith(b"content-length"))
            await reader.readexactly(int(length.partition(b":")[2]))
        writer.close()


def read_ledger(server, table):
    data = server.control.call("GET", f"/ledger?table={table}&since=0")
    return pyarrow.ipc.open_stream(data).read_all().to_pandas()


def serve_over_sockets(serve, witness, requests, changes):
    """What the clients, the model and the ledger say."""
    changes = changes | {"batch.max_size": BATCH, "queue.depth": 1000, "ledger.capacity": 1 << 17}
    server = serve("promise_models:Deadly", changes=changes, env={"PERFKIT_WITNESS": str(witness)})
    clients = Clients(server.port, requests)
    asyncio.run(clients.run())
    rows, batches = read_ledger(server, "requests"), read_ledger(server, "batches")
    rows["deadline_ns"] = rows["accepted_ns"] + rows["request_id"].map(clients.deadline_ns)
    rows = rows.merge(batches[["batch_id", "collated_ns"]], on="batch_id", how="left").set_index("request_id")
    seen = pandas.read_csv(witness, sep=" ", names=["request_id", "entered_ns"], index_col="request_id")
    seen = seen.join(rows)
    late, expired = seen["entered_ns"] - seen["deadline_ns"], rows[rows["status"] == 504]
    return clients.statuses, {
        "requests": len(rows),
        "expired": len(expired),
        "in_predict": len(seen),
        "expired_in_predict": int((seen["collated_ns"] >= seen["deadline_ns"]).sum()),
        "late_on_entry_max_s": max(0.0, float(late.max()) / 1e9),
        "overshoot_p99_s": float((expired["replied_ns"] - expired["deadline_ns"]).quantile(0.99)) / 1e9,
        "one_batch_p99_s": float((batches["woken_ns"] - batches["taken_ns"]).quantile(0.99)) / 1e9,
    }


SETTINGS = {
    "inline": {},
    "pools": {"preprocess.placement": "threads", "postprocess.placement": "threads"},
    "stages in processes": {"preprocess.placement": "processes", "postprocess.placement": "processes"},
    "model in processes": {"concurrency.model": "processes"},
    "asyncio": {"concurrency.model": "asyncio"},
    "elastic": {"concurrency.model": "elastic", "elastic.core": 1, "elastic.max": 1},
    "replicas": {"replicas": 2},
}
KINDS = [pytest.param(kind, marks=() if kind in ("inline", "pools") else pytest.mark.slow) for kind in SETTINGS]


@pytest.mark.parametrize("kind", KINDS)
def test_over_sockets_no_request_reaches_the_model_after_its_deadline(serve, told, tmp_path, kind):
    statuses, figures = serve_over_sockets(serve, tmp_path / "witness", 600, SETTINGS[kind])
    told("R3", TARGET, kind=kind, **figures)
    assert statuses.keys() <= {200, 504}
    assert (sum(statuses.values()), figures["requests"], statuses[504]) == (600, 600, figures["expired"])
    assert figures["expired_in_predict"] == 0
    assert min(figures["expired"], figures["in_predict"]) > 20, "both ends are common"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_over_sockets_none_of_a_hundred_thousand_reaches_the_model_after_its_deadline(serve, told, tmp_path):
    statuses, figures = serve_over_sockets(serve, tmp_path / "witness", 100_000, {})
    told("R3", TARGET, kind="inline", **figures)
    assert (sum(statuses.values()), statuses.keys() <= {200, 504}) == (100_000, True)
    assert figures["expired_in_predict"] == 0
    assert figures["overshoot_p99_s"] <= figures["one_batch_p99_s"] + 0.010
