"""How does a run look in a trace viewer (Perfetto, chrome://tracing)? Requests, batches and threads as trace events.

Complete events (`ph` X, microseconds, [Trace Event Format]) on lines that never overlap: one process holds
the requests, each with its stages inside, on as many lines as were in flight at once; the other one the
service's threads, with the batches (stages inside) and what was done for single requests. A flow leads from
each request to its batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfkit.measuring.archive import documents, durable
from perfkit.measuring.archive.folder import StoredRun
from perfkit.measuring.exporting import spans
from perfkit.measuring.exporting.lanes import assign_lanes
from perfkit.records import EndState

if TYPE_CHECKING:
    import pandas as pd

MOST_REQUESTS = 20_000  # what a viewer still opens; about 500,000 events
SERVICE_PID, REQUESTS_PID = 1, 2
_NS_PER_US = 1_000
_UNKNOWN_THREAD = 0
_FURTHER_TID = 1 << 32  # above every thread id of Linux: a thread's second line, third line, …
Event = dict[str, Any]


def write_trace(run: StoredRun, path: Path, limit: int = MOST_REQUESTS) -> tuple[int, int]:
    """Write the trace of a run's first requests; returns how many it shows, and of how many. Raises ArchiveError."""
    requests = run.table("requests")
    batches, series = (spans.table_of(run, name) for name in ("batches", "series"))
    shown = requests.sort_values(["scheduled_ns", "accepted_ns"], kind="stable").head(limit)
    document = {
        "displayTimeUnit": "ms",
        "otherData": {
            "run": run.manifest.id,
            "simulated": run.manifest.simulated,
            "model": str(run.manifest.settings.get("model", "")),
            "requests_shown": len(shown),
            "requests": len(requests),
        },
        "traceEvents": trace_events(shown, batches, spans.thread_names(series)),
    }
    durable.replace_file(path, documents.encode(document, f"the trace of {run.manifest.id}"))
    return len(shown), len(requests)


def trace_events(requests: pd.DataFrame, batches: pd.DataFrame, names: dict[int, str]) -> list[Event]:
    """The events of some requests, of the batches that they went through, and of the threads that worked for them."""
    lives = list(spans.request_lives(requests, batches))
    wanted = {life.batch for life in lives}
    through = [life for life in spans.batch_lives(batches) if life.batch in wanted]
    work = list(spans.request_work(requests))
    starts = [life.start_ns for life in (*lives, *through)] + [one.span.start_ns for one in work]
    writer = _Writer(min(starts, default=0))
    places = _threads(writer, through, work, names)
    _requests(writer, lives, places)
    return writer.events


class _Writer:
    """Collects events, with times from the first instant on."""

    def __init__(self, zero_ns: int) -> None:
        self.events: list[Event] = []
        self._zero_ns = zero_ns

    def name(self, kind: str, pid: int, tid: int, name: str) -> None:
        """What a process or thread is called."""
        self.events.append({"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}})

    def span(self, span: spans.Span, line: tuple[int, int], kind: str, facts: Any = None) -> None:
        """One complete event on the line (pid, tid)."""
        event = {"ph": "X", "name": span.name, "cat": kind, "ts": self._us(span.start_ns)}
        event |= {"dur": (span.end_ns - span.start_ns) / _NS_PER_US, "pid": line[0], "tid": line[1]}
        self.events.append(event | ({"args": dict(facts)} if facts else {}))

    def flow(self, number: int, at_ns: int, start: tuple[int, int], end: tuple[int, int]) -> None:
        """An arrow from the span around an instant on one line to that on another."""
        for phase, (pid, tid) in (("s", start), ("f", end)):
            event = {"ph": phase, "name": "joins batch", "cat": "flow", "id": number, "ts": self._us(at_ns)}
            self.events.append(event | {"pid": pid, "tid": tid} | ({"bp": "e"} if phase == "f" else {}))

    def _us(self, at_ns: int) -> float:
        return (at_ns - self._zero_ns) / _NS_PER_US


def _requests(writer: _Writer, lives: Sequence[spans.Life], places: dict[tuple[int, int], tuple[int, int]]) -> None:
    writer.name("process_name", REQUESTS_PID, 0, "requests")
    lanes = assign_lanes([(life.start_ns, life.end_ns) for life in lives])
    for lane in range(max(lanes, default=-1) + 1):
        writer.name("thread_name", REQUESTS_PID, lane, f"in flight {lane + 1}")
    for number, (life, lane) in enumerate(zip(lives, lanes, strict=True)):
        line = (REQUESTS_PID, lane)
        end_state = life.facts.get("end_state", EndState.OK.label)
        title = "request" if end_state == EndState.OK.label else f"request {end_state}"  # few names, to add up by
        writer.span(spans.Span(name=title, start_ns=life.start_ns, end_ns=life.end_ns), line, "request", life.facts)
        for stage in life.stages:
            writer.span(stage, line, "stage")
        if life.batch in places:
            tid, at_ns = places[life.batch]
            writer.flow(number, at_ns, line, (SERVICE_PID, tid))


def _threads(
    writer: _Writer, batches: Iterable[spans.Life], work: Iterable[spans.Work], names: dict[int, str]
) -> dict[tuple[int, int], tuple[int, int]]:
    """Writes the service's threads; returns each batch's line (its tid) and start."""
    writer.name("process_name", SERVICE_PID, 0, "service threads")
    places: dict[tuple[int, int], tuple[int, int]] = {}
    of_thread: dict[int, list[spans.Life]] = {}
    for life in (*batches, *_as_lives(work)):
        of_thread.setdefault(_UNKNOWN_THREAD if life.thread is None else life.thread, []).append(life)
    further = 0
    for thread, lives in sorted(of_thread.items()):
        lanes = assign_lanes([(life.start_ns, life.end_ns) for life in lives])
        tids = [thread, *(_FURTHER_TID + further + lane for lane in range(max(lanes)))]
        further += max(lanes)
        title = names.get(thread, "") or ("thread not recorded" if thread == _UNKNOWN_THREAD else f"thread {thread}")
        for place, tid in enumerate(tids):
            writer.name("thread_name", SERVICE_PID, tid, f"{title} ({place + 1})" if place else title)
        for life, lane in zip(lives, lanes, strict=True):
            _write_on_thread(writer, life, tids[lane])
            if life.batch is not None:
                places[life.batch] = (tids[lane], life.start_ns)
    return places


def _write_on_thread(writer: _Writer, life: spans.Life, tid: int) -> None:
    line = (SERVICE_PID, tid)
    if life.batch is None:
        (only,) = life.stages
        writer.span(only, line, "request", life.facts)
        return
    title = f"batch of {life.facts.get('size', 'unknown size')}"
    writer.span(spans.Span(name=title, start_ns=life.start_ns, end_ns=life.end_ns), line, "batch", life.facts)
    for stage in life.stages:
        writer.span(stage, line, "stage")


def _as_lives(work: Iterable[spans.Work]) -> Iterator[spans.Life]:
    for one in work:
        start_ns, end_ns = one.span.start_ns, one.span.end_ns
        yield spans.Life(start_ns=start_ns, end_ns=end_ns, stages=(one.span,), facts=one.facts, thread=one.thread)
