"""R4: does a client that leaves, in whatever stage its request is, take nothing with it and harm no mate?

Clients reset their connections at random instants: before the request is whole, in the queue, in each stage. Others
stay and share batches with them. Target: 0 ledger rows, places or admissions leaked, 100 % of the mates answered.
"""

from __future__ import annotations

import asyncio
import random
import socket
import struct
from collections import Counter

import pyarrow
import pytest

from perfkit.records import EndState

TARGET = "0 leaked rows, slots and admissions, mates 100 % ok"
LEAVERS, MATES = 64, 8
LONGEST_STAY_S = 0.03
ABORT = struct.pack("ii", 1, 0)  # SO_LINGER: closing sends RST
REACHED = ("parsed_ns", "preprocess_started_ns", "batch_joined_ns", "postprocess_started_ns")


def request(number, *, inputs=1):
    field = f'"input":{number}' if inputs == 1 else f'"inputs":{[number] * inputs}'
    body = f"{{{field}}}"
    return f"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


class Storm:
    """Clients that reset their connections, and mates that stay as long as any of those is left."""

    def __init__(self, port, resets):
        self._address = ("127.0.0.1", port)
        self._numbers = iter(range(resets))
        self._chance = random.Random(resets)
        self._leavers = LEAVERS
        self.mates = Counter()  # of the answers to those that stay: right or wrong

    async def rage(self):
        await asyncio.gather(*(self._leave() for _ in range(LEAVERS)), *(self._stay(name) for name in range(MATES)))

    async def _leave(self):
        loop, chance = asyncio.get_running_loop(), self._chance
        for number in self._numbers:
            sock = socket.socket()
            sock.setblocking(False)
            await loop.sock_connect(sock, self._address)
            data = request(number, inputs=chance.choice((1, 1, 1, 3)))
            whole = chance.random() < 0.9
            await loop.sock_sendall(sock, data if whole else data[: chance.randrange(1, len(data))])
            await asyncio.sleep(chance.uniform(0, LONGEST_STAY_S))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORT)
            sock.close()
        self._leavers -= 1

    async def _stay(self, name):
        reader, writer = await asyncio.open_connection(*self._address)
        while self._leavers:
            writer.write(request(name))
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
            body = await reader.readexactly(int(length.partition(b":")[2]))
            is_right = head.startswith(b"HTTP/1.1 200 ") and body.endswith(b'"output":%d}' % name)
            self.mates["right" if is_right else "wrong"] += 1
        writer.close()


def left_behind(server, patience_s):
    """What the server still holds once nobody is there any more; empty as soon as it holds nothing."""
    for _ in range(round(patience_s / 0.05)):
        stats = server.stats()
        ended = sum(count for state, count in stats["counters"].items() if state != "accepted")
        held = {
            "in_flight": stats["gauge"]["in_flight"],
            "queued": stats["queued"],
            "admitted": stats["admitted"],
            "slots": stats["gate"]["in_hand"],
            "rows": stats["ledger"]["open_requests"] + stats["ledger"]["open_batches"],
            "unended": stats["counters"]["accepted"] - ended,
        }
        if not any(held.values()):
            return {}
        asyncio.run(asyncio.sleep(0.05))
    return {name: count for name, count in held.items() if count}


def stages_reached(server):
    """How far the cancelled requests had come, from the ledger: the last of a few instants that each of them has."""
    data = server.control.call("GET", "/ledger?table=requests&since=0")
    rows = pyarrow.ipc.open_stream(data).read_all().to_pandas()
    cancelled = rows[rows["end_state"] == int(EndState.CANCELLED)]
    return Counter(_last(row) for row in cancelled[list(REACHED)].itertuples(index=False))


def _last(row):
    return [name for name, instant in zip(REACHED, row, strict=True) if instant][-1].removesuffix("_ns")


def storm_over(serve, resets, changes, *, patience_s=20.0, **env):
    """The mates' answers, what was left behind, and how far the cancelled ones had come."""
    limits = {"limits.policy": "fixed", "limits.in_hand": 10_000, "queue.depth": 10_000}
    server = serve("promise_models:Lingering", changes=limits | changes, env=env)
    storm = Storm(server.port, resets)
    asyncio.run(storm.rage())
    leaked = left_behind(server, patience_s)
    return storm.mates, leaked, stages_reached(server)


BATCHES = {"batch.max_size": 8}
SETTINGS = {
    "inline": BATCHES,
    "pools": BATCHES | {"preprocess.placement": "threads", "postprocess.placement": "threads"},
    "stages in processes": BATCHES | {"preprocess.placement": "processes", "postprocess.placement": "processes"},
    "model in processes": BATCHES | {"concurrency.model": "processes"},
    "asyncio": BATCHES | {"concurrency.model": "asyncio", "workers": 2},
    "elastic": BATCHES | {"concurrency.model": "elastic"},
    "replicas": BATCHES | {"replicas": 2},
    "thread_per_request": {"concurrency.model": "thread_per_request"},
    "block": BATCHES | {"queue.policy": "block", "queue.depth": 16, "queue.block_s": 5.0},
}
IN_SHORT = ("inline", "pools", "thread_per_request")  # the others take their time
KINDS = [pytest.param(kind, marks=() if kind in IN_SHORT else pytest.mark.slow) for kind in SETTINGS]


@pytest.mark.parametrize("kind", KINDS)
def test_clients_that_leave_take_nothing_with_them_and_harm_no_mate(serve, told, kind):
    check(storm_over(serve, 300, SETTINGS[kind]), told, kind=kind, resets=300)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", ["inline", "pools"])
def test_fifty_thousand_clients_that_leave_take_nothing_with_them_and_harm_no_mate(serve, told, kind):
    """Of both kinds: a hundred thousand in all."""
    check(storm_over(serve, 50_000, SETTINGS[kind] | {"workers": 2}), told, kind=kind, resets=50_000)


def check(results, told, **about):
    mates, leaked, stages = results
    told("R4", TARGET, **about, leaked=sum(leaked.values()), mates=dict(mates), cancelled=dict(stages))
    assert leaked == {}
    assert (mates["wrong"], mates["right"] > 0) == (0, True)
    assert len(stages) >= 2, "they left in different stages"


def test_the_storm_finds_a_server_that_leaks(serve):
    """The control: one that now and then forgets a request which it took from the queue because its client left."""
    _, leaked, _ = storm_over(serve, 300, BATCHES, patience_s=1.0, PERFKIT_LEAKS="1")
    assert leaked.keys() == {"in_flight", "slots", "rows", "unended"}
