"""How many requests were served and where did their time go, in the words of the statistics extension?

The figures are read from the ledger when somebody asks, so that they cost requests nothing. They
grow from one asking to the next, and cover what the ledger still held then: whoever asks at least once
in `ledger.capacity` requests misses none. A request with several inputs counts once for each.
"""

from __future__ import annotations

import threading
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from perfkit.clock import Clock, calendar_now
from perfkit.records import EndState
from perfkit.serving.instrument import columns as c
from perfkit.serving.instrument.ledger import Ledger
from perfkit.serving.server.oip.metadata import VERSION
from perfkit.serving.server.timing import SOURCES

if TYPE_CHECKING:
    from perfkit.serving.server.service import Service

Rows = NDArray[np.int64]

_KEPT_BATCHES = 4096  # whose requests may still be in postprocess
_NS_PER_MS = 1_000_000
_MS_PER_S = 1_000
GROUPS = {
    "queue": ("preprocess_wait", "queue_wait", "batch_wait", "postprocess_wait"),
    "compute_input": (
        "to_preprocess", "preprocess", "from_preprocess", "to_model", "model_load", "collate", "copy_wait", "h2d",
    ),
    "compute_infer": ("compute_wait", "compute"),
    "compute_output": (
        "d2h", "wake_lag", "from_model", "to_postprocess", "postprocess", "serialize", "from_postprocess",
    ),
}  # fmt: skip
"""Which stages the extension's four figures hold; parse and reply are in none, only in a request's total."""
_GROUP_OF = {stage: group for group, stages in GROUPS.items() for stage in stages}


class Tally:
    """A count and the nanoseconds that it took in all."""

    __slots__ = ("count", "ns")

    def __init__(self) -> None:
        self.count = 0
        self.ns = 0

    def add(self, durations_ns: Rows) -> None:
        """Count each duration."""
        self.count += len(durations_ns)
        self.ns += int(durations_ns.sum())

    def as_json(self) -> dict[str, int]:
        """As the extension writes it."""
        return {"count": self.count, "ns": self.ns}


class Statistics:
    """What the ledger told so far. For any thread."""

    def __init__(self, requests: Ledger, batches: Ledger, clock: Clock) -> None:
        self._lock = threading.Lock()  # guards everything below
        self._epoch_ms = _epoch_ms(clock)
        self._requests = requests
        self._batches = batches
        self._next_request = 0
        self._next_batch = 0
        self._kept = _read(batches, batches.closed)  # rows of earlier batches: their requests may still be open
        self._success = Tally()
        self._fail = Tally()
        self._of_requests = {group: Tally() for group in GROUPS}
        self._of_batches: dict[int, dict[str, Tally]] = {}  # by size
        self._last_replied_ns = 0

    def document(self, service: Service) -> dict[str, Any]:
        """All figures up to now."""
        with self._lock:
            self._catch_up()
            return {"model_stats": [self._of_model(service)]}

    def _catch_up(self) -> None:
        requests = _read(self._requests, self._next_request)
        fresh = _read(self._batches, self._next_batch)  # afterwards: a request's batch is closed before the request
        self._next_batch = int(fresh[-1, 0]) if len(fresh) else self._next_batch
        self._next_request = int(requests[-1, 0]) if len(requests) else self._next_request
        self._count_batches(fresh)
        known = np.concatenate((self._kept, fresh))
        self._count_requests(requests, known)
        self._kept = known[-_KEPT_BATCHES:]

    def _count_requests(self, requests: Rows, batches: Rows) -> None:
        if not len(requests):
            return
        self._last_replied_ns = max(self._last_replied_ns, int(requests[:, c.REPLIED].max()))
        total_ns = requests[:, c.REPLIED] - requests[:, c.ACCEPTED]
        is_good = requests[:, c.END_STATE] == EndState.OK
        self._success.add(total_ns[is_good])
        self._fail.add(total_ns[~is_good])
        good, of_batch = _joined(requests[is_good], batches)
        for group, durations_ns in _durations(good, of_batch).items():
            self._of_requests[group].add(durations_ns)

    def _count_batches(self, batches: Rows) -> None:
        batches = batches[batches[:, c.B_WOKEN] != 0]  # else the call failed
        for size in np.unique(batches[:, c.B_SIZE]):
            rows = batches[batches[:, c.B_SIZE] == size]
            tallies = self._of_batches.setdefault(int(size), {group: Tally() for group in GROUPS if group != "queue"})
            durations = _durations(None, rows)
            for group, tally in tallies.items():
                tally.add(durations[group])

    def _of_model(self, service: Service) -> dict[str, Any]:
        nothing = Tally().as_json()
        figures = {"success": self._success, "fail": self._fail, **self._of_requests}
        return {
            "name": service.settings.model,
            "version": VERSION,
            "last_inference": self._last_inference_ms(),
            "inference_count": self._success.count,
            "execution_count": sum(tallies["compute_infer"].count for tallies in self._of_batches.values()),
            "inference_stats": {name: tally.as_json() for name, tally in figures.items()}
            | {"cache_hit": nothing, "cache_miss": nothing},
            "response_stats": {},
            "batch_stats": [
                {"batch_size": size, **{group: tally.as_json() for group, tally in tallies.items()}}
                for size, tallies in sorted(self._of_batches.items())
            ],
            "memory_usage": [],
        }

    def _last_inference_ms(self) -> int:
        return self._epoch_ms + self._last_replied_ns // _NS_PER_MS if self._last_replied_ns else 0


def _read(ledger: Ledger, since: int) -> Rows:
    cells, _ = ledger.read(since)
    return np.frombuffer(cells, dtype=np.int64).reshape(-1, ledger.width)


def _joined(requests: Rows, batches: Rows) -> tuple[Rows, Rows]:
    """The requests whose batch is known, and for each of them the row of its batch."""
    if not len(batches):
        return requests[:0], batches
    batches = batches[np.argsort(batches[:, c.B_BATCH_ID])]
    ids = requests[:, c.BATCH_ID]
    place = np.minimum(np.searchsorted(batches[:, c.B_BATCH_ID], ids), len(batches) - 1)
    is_known = batches[place, c.B_BATCH_ID] == ids
    return requests[is_known], batches[place[is_known]]


def _durations(requests: Rows | None, batches: Rows) -> dict[str, Rows]:
    """Each group's time in each row, of batches alone without requests; absent instants let their neighbours adjoin."""
    totals = {group: np.zeros(len(batches), dtype=np.int64) for group in GROUPS}
    before = batches[:, c.B_SEALED] if requests is None else requests[:, c.ACCEPTED]
    for stage, is_batch, column in SOURCES:
        rows = batches if is_batch else requests
        if rows is None or (requests is None and column == c.B_SEALED):
            continue
        ended = np.where(rows[:, column] != 0, rows[:, column], before)
        if stage in _GROUP_OF:
            totals[_GROUP_OF[stage]] += ended - before
        before = ended
    return totals


def _epoch_ms(clock: Clock) -> int:
    """Where the monotonic clock's zero lies on the calendar, in milliseconds since 1970."""
    return round(datetime.fromisoformat(calendar_now()).timestamp() * _MS_PER_S) - clock.now_ns() // _NS_PER_MS
