"""Why was this one request slow? One structured line for each, written off the request path.

The event loop only compares a latency with the threshold and, for a slow one, puts a copy of its
ledger rows into a bounded inbox. A thread of the log's own waits until the batch mates have been
answered too, and writes one JSON object a line to the process's error stream, where the run's log keeps it.
"""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple, TextIO

import orjson

from perfkit.clock import NS_PER_S, REAL_CLOCK, Clock, calendar_now
from perfkit.records import EndState
from perfkit.serving.instrument import columns as c
from perfkit.serving.instrument.ledger import Ledger
from perfkit.serving.scheduling.threshold import SlowThreshold
from perfkit.serving.server.timing import stage_durations_ns
from perfkit.serving.server.trace import read_trace
from perfkit.settings.surroundings import LogSettings

_MOST_WAITING = 256  # in the inbox: when everything is slow, a sample of it says as much
_SETTLE_NS = NS_PER_S // 4  # the mates of a batch are answered within this time, or are not told
_ROWS_SEARCHED = 4096  # the newest rows of the ledger, among which the mates are looked for


class SlowRequest(NamedTuple):
    """What is known of a slow request when it has been answered."""

    row: Sequence[int]
    batch_row: Sequence[int]
    latency_ns: int
    queued_on_arrival: int
    traceparent: bytes | None
    answered_ns: int


class SlowRequestLog:
    """Judges every latency on the event loop's thread; writes on a thread of its own. `close` ends that thread."""

    def __init__(self, settings: LogSettings, ledger: Ledger, stream: TextIO = sys.stderr, clock: Clock = REAL_CLOCK):
        limit_ns = None if settings.slow_s is None else round(settings.slow_s * NS_PER_S)
        self.threshold = SlowThreshold(limit_ns, settings.slow_ratio)
        self.written = 0
        self.dropped = 0  # slow requests for which the inbox had no room
        self._ledger = ledger
        self._stream = stream
        self._clock = clock
        self._inbox: queue.SimpleQueue[SlowRequest | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._live, name="slow-log", daemon=True)

    def start(self) -> None:
        """Start the writing thread."""
        self._thread.start()

    def close(self) -> None:
        """Write what waits, then end the thread."""
        self._inbox.put(None)
        self._thread.join()

    def put(self, slow: SlowRequest) -> None:
        """Have it written, unless too many wait already."""
        if self._inbox.qsize() >= _MOST_WAITING:
            self.dropped += 1
        else:
            self._inbox.put(slow)

    def _live(self) -> None:
        while (slow := self._inbox.get()) is not None:
            self._clock.sleep_until(slow.answered_ns + _SETTLE_NS)
            line = orjson.dumps(describe(slow, self._mates(slow), self.threshold.present_ns))
            self._stream.write(f"{line.decode()}\n")
            self._stream.flush()
            self.written += 1

    def _mates(self, slow: SlowRequest) -> list[int]:
        """The clients' numbers of the other requests in the batch; 0 for one that gave none."""
        batch_id, width = slow.row[c.BATCH_ID], self._ledger.width
        if not batch_id:
            return []
        cells, _ = self._ledger.read(max(0, self._ledger.closed - _ROWS_SEARCHED))
        rows = [start for start in range(0, len(cells), width) if cells[start + c.BATCH_ID] == batch_id]
        return [cells[start + c.REQUEST_ID] for start in rows if cells[start] != slow.row[0]]


def describe(slow: SlowRequest, mates: Sequence[int], threshold_ns: int) -> dict[str, Any]:
    """The line's content: times in seconds, the stages in their order, the threshold as it is now."""
    trace = read_trace(slow.traceparent)
    stages_s = {stage: ns / NS_PER_S for stage, ns in stage_durations_ns(slow.row, slow.batch_row)}
    size = slow.batch_row[c.B_SIZE] if slow.batch_row else None
    return {
        "event": "slow_request",
        "time": calendar_now(),
        "trace_id": trace.trace_id,
        "parent_id": trace.parent_id or None,
        "request_id": slow.row[c.REQUEST_ID] or None,
        "end_state": EndState(slow.row[c.END_STATE]).label,
        "status": slow.row[c.STATUS],
        "latency_s": slow.latency_ns / NS_PER_S,
        "threshold_s": threshold_ns / NS_PER_S,
        "queued_on_arrival": slow.queued_on_arrival,
        "batch": {"id": slow.row[c.BATCH_ID], "size": size, "mates": list(mates)} if size else None,
        "stages_s": stages_s,
    }
