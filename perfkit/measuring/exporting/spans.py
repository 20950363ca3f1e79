"""Which spans of time does a run's ledger hold? Requests with their stages, batches with theirs, threads at work.

Table in, plain records out, in integer nanoseconds of the run's clock; traces and telemetry are made of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perfkit.measuring.analysis.ledger import BOUNDARIES, has_server_half, with_batch_instants
from perfkit.measuring.archive.format import TABLES
from perfkit.records import BATCH_INSTANTS, STAGE_ENDS

if TYPE_CHECKING:
    import pandas as pd

    from perfkit.measuring.archive.folder import StoredRun

_STAGE_OF = {end: stage for stage, end in STAGE_ENDS.items()}
_BATCH_BOUNDARIES = tuple(name for name in BOUNDARIES if name in BATCH_INSTANTS)
_FACTS = ("round", "request_id", "end_state", "status", "error", "payload", "bytes_out", "bytes_in", "batch_id")
_INLINE = ("worker_free_ns", "due_ns", "taken_ns")
_BATCH_FACTS = ("round", "batch_id", "size", "units", "padded_units")
SERVICE = "service"
"""Between send and reply of a service that keeps no ledger: nothing is known of what it did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Something that lasted: a stage, or what a thread did."""

    name: str
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """A request or a batch: from its first instant to its last, the stages between them, its facts."""

    start_ns: int
    end_ns: int
    stages: tuple[Span, ...]
    facts: Mapping[str, Any]
    thread: int | None = None  # that a batch ran on

    @property
    def batch(self) -> tuple[int, int] | None:
        """Round and number of the batch that it is, or went through; None when it reached none."""
        number = self.facts.get("batch_id")
        return None if number is None else (int(self.facts.get("round") or 0), int(number))


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a thread did for one request."""

    thread: int | None
    span: Span
    facts: Mapping[str, Any]


def table_of(run: StoredRun, name: str) -> pd.DataFrame:
    """A table of a run; an empty one where a run, as of a service or file of somebody else, has none."""
    import pandas

    return run.table(name) if name in run.tables else pandas.DataFrame(columns=list(TABLES[name].columns))


def request_lives(requests: pd.DataFrame, batches: pd.DataFrame) -> Iterator[Life]:
    """Every request that has two instants or more, in the order of the rows."""
    rows = with_batch_instants(requests, batches)
    served = has_server_half(rows)
    columns = (*(f"{name}_ns" for name in BOUNDARIES), *_FACTS, *_INLINE)
    for row, known in zip(_rows(rows, columns), served, strict=True):
        stages = tuple(_told_apart(row, _stages(row, BOUNDARIES), known))
        if stages:
            facts = {name: row[name] for name in _FACTS if row.get(name) not in (None, "")}
            yield Life(start_ns=stages[0].start_ns, end_ns=stages[-1].end_ns, stages=stages, facts=facts)


def batch_lives(batches: pd.DataFrame) -> Iterator[Life]:
    """Every batch that has two instants or more, in the order of the rows."""
    columns = (*(f"{name}_ns" for name in _BATCH_BOUNDARIES), *_BATCH_FACTS, "model_thread")
    for row in _rows(batches, columns):
        stages = _stages(row, _BATCH_BOUNDARIES)
        if stages:
            facts = {name: row[name] for name in _BATCH_FACTS if row.get(name) is not None}
            start_ns, end_ns, thread = stages[0].start_ns, stages[-1].end_ns, row.get("model_thread")
            yield Life(start_ns=start_ns, end_ns=end_ns, stages=stages, facts=facts, thread=thread)


def request_work(requests: pd.DataFrame) -> Iterator[Work]:
    """What the threads of preprocess and postprocess did for single requests."""
    parts = {
        "preprocess": ("preprocess_thread", "preprocess_started", ("preprocess_returned", "preprocess_ended")),
        "postprocess": ("postprocess_thread", "postprocess_started", ("postprocess_ended",)),
        "serialize": ("postprocess_thread", "postprocess_ended", ("serialised",)),
    }
    names = {name for _, start, ends in parts.values() for name in (start, *ends)}
    threads = {thread for thread, _, _ in parts.values()}
    columns = (*(f"{name}_ns" for name in sorted(names)), *sorted(threads), "round", "request_id")
    for row in _rows(requests, columns):
        facts = {name: row[name] for name in ("round", "request_id") if row.get(name) is not None}
        for name, (thread, start, ends) in parts.items():
            start_ns = row.get(f"{start}_ns")
            end_ns = next((at for end in ends if (at := row.get(f"{end}_ns")) is not None), None)
            if start_ns is not None and end_ns is not None and end_ns > start_ns:
                span = Span(name=name, start_ns=start_ns, end_ns=end_ns)
                yield Work(thread=row.get(thread), span=span, facts=facts)


def thread_names(series: pd.DataFrame) -> dict[int, str]:
    """Names of threads by their ids, from the sources `thread:ID:NAME` of a run's series."""
    found: dict[int, str] = {}
    for source in series["source"].dropna().unique() if len(series) else ():
        kind, _, rest = str(source).partition(":")
        number, _, name = rest.partition(":")
        if kind == "thread" and number.isdigit() and name:
            found[int(number)] = name
    return found


def _rows(table: pd.DataFrame, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Rows as dicts of Python values, None where absent; columns that a table lacks are left out."""
    known = [name for name in columns if name in table.columns]
    lists = [table[name].astype(object).where(table[name].notna(), None).tolist() for name in known]
    for values in zip(*lists, strict=True):
        yield dict(zip(known, values, strict=True))


def _told_apart(row: Mapping[str, Any], stages: Sequence[Span], known: bool) -> Iterator[Span]:
    """The wait before inline preprocess by what it consists of, as in analysis.ledger; what is unknown by that name."""
    for stage in stages:
        if stage.name == "preprocess_wait":
            yield from _inline_wait(row, stage)
        elif stage.name == "receive" and not known:
            yield Span(name=SERVICE, start_ns=stage.start_ns, end_ns=stage.end_ns)
        else:
            yield stage


def _inline_wait(row: Mapping[str, Any], wait: Span) -> Iterator[Span]:
    """`queue_wait` until a worker was free, `batch_wait` while its window was open, `preprocess_wait` for the rest."""
    free_ns, due_ns, taken_ns = (row.get(name) for name in _INLINE)
    if taken_ns is None or taken_ns > wait.end_ns:
        yield wait
        return
    picked_up_ns = min(max(free_ns if free_ns is not None else wait.start_ns, wait.start_ns), wait.end_ns)
    sealed_ns = max(min(due_ns if due_ns is not None else wait.end_ns, wait.end_ns), picked_up_ns)
    edges = (wait.start_ns, picked_up_ns, sealed_ns, wait.end_ns)
    for name, start_ns, end_ns in zip(("queue_wait", "batch_wait", wait.name), edges[:-1], edges[1:], strict=True):
        if end_ns > start_ns:
            yield Span(name=name, start_ns=start_ns, end_ns=end_ns)


def _stages(row: Mapping[str, Any], boundaries: Sequence[str]) -> tuple[Span, ...]:
    """The stages between neighbouring instants that are there; those without any length are left out."""
    found: list[Span] = []
    start_ns: int | None = None
    for name in boundaries:
        at_ns = row.get(f"{name}_ns")
        if at_ns is None:
            continue
        if start_ns is not None and at_ns > start_ns:
            found.append(Span(name=_STAGE_OF[name], start_ns=start_ns, end_ns=at_ns))
        start_ns = at_ns
    return tuple(found)
