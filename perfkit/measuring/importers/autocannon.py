"""What does autocannon say (`-j`)?

Whole milliseconds over all replies, error replies too; P97.5 instead of P95. A run without a reply has
zeros for every latency. With a rate (`-R`) it makes up latencies for sends that came late.
"""

from __future__ import annotations

import re

from perfkit.measuring.importers.cells import duration_s, number
from perfkit.measuring.importers.document import count, figure, load_object, part
from perfkit.measuring.importers.imported import Imported, Level, Rows, Timing
from perfkit.measuring.importers.source import Source

NAME, TEXT_NAME = "autocannon JSON", "autocannon text"
_CELLS = re.compile(r"^│ (.*) │$", re.MULTILINE)
_CONNECTIONS = re.compile(r"^(\d{1,9}) connections", re.MULTILINE)
_COUNT = re.compile(r"\d{1,15}")
_DONE = re.compile(r"requests in (\S+?),")
_PERCENTILES = {0.5: "p50", 0.75: "p75", 0.9: "p90", 0.975: "p97_5", 0.99: "p99", 0.999: "p99_9"}
_MADE_UP = 1.05  # more latencies than replies


def matches(head: str) -> bool:
    """By fields that only autocannon writes together."""
    return head.lstrip().startswith("{") and all(f'"{name}"' in head for name in ("non2xx", "pipelining", "latency"))


def matches_text(head: str) -> bool:
    """By the first line of its table."""
    return "│ Stat" in head and "│ Latency" in head


def read(source: Source) -> Imported:
    """One level."""
    document = load_object(source, "an autocannon result")
    latency, requests = part(document, "latency"), part(document, "requests")
    answered, sent, lost = count(requests, "total"), count(requests, "sent"), count(document, "errors")
    seconds = figure(document, "duration")
    measured = count(latency, "totalCount") or 0
    notes = [*source.notes, "whole milliseconds; error replies are in the latencies"]
    is_made_up = bool(answered) and measured > _MADE_UP * (answered or 0)
    if is_made_up:
        notes.append(f"{measured:,} latencies of {answered:,} replies: autocannon made some up, so none is taken")
    if answered == 0:
        notes.append("no reply: the zeros are no latencies")
    if sent and answered is not None and sent - answered - (lost or 0) > (figure(document, "connections") or 0):
        notes.append(f"{sent - answered - (lost or 0):,} requests were sent and neither answered nor counted as errors")
    shown = latency if answered and not is_made_up else {}
    found = {p: figure(shown, name, 1e3) for p, name in _PERCENTILES.items()}
    errors = [value for value in (count(document, "non2xx"), lost) if value is not None]
    level = Level(
        name="run",
        loop="open" if is_made_up else "closed",
        concurrency=figure(document, "connections"),
        requests=None if answered is None else answered + (lost or 0),
        errors=sum(errors) if errors else None,
        timeouts=count(document, "timeouts"),
        duration_s=seconds,
        throughput_rps=answered / seconds if answered is not None and seconds else None,
        mean_s=figure(shown, "mean", 1e3),
        min_s=figure(shown, "min", 1e3),
        max_s=figure(shown, "max", 1e3),
        percentiles_s={p: value for p, value in found.items() if value is not None},
    )
    return Imported(
        path=str(source.path),
        format=NAME,
        rows=Rows(read=1, kept=1, dropped={}),
        timing=Timing(unit="ms", clock="wall clock with zone", scope="cumulative", basis="sent"),
        levels=(level,),
        notes=tuple(notes),
    )


def read_text(source: Source) -> Imported:
    """The tables as one level; requests are counted by status code where those were asked for."""
    text = source.whole()
    rows = [[cell.strip() for cell in line.split("│")] for line in _CELLS.findall(text)]
    heading = next((row for row in rows if row[0] == "Stat"), [])
    latency = next((row for row in rows if row[0] == "Latency"), [])
    times = {name: duration_s(cell) for name, cell in zip(heading, latency, strict=False)}
    codes = {row[0]: int(row[1]) for row in rows if len(row) == 2 and all(map(_COUNT.fullmatch, row))}
    statuses = {code: many for code, many in codes.items() if len(code) == 3}
    connections, done = _CONNECTIONS.search(text), _DONE.search(text)
    seconds = duration_s(done[1]) if done else None
    answered = sum(statuses.values()) if "│ Code" in text else None
    found = {name: number(name) for name in times if name.endswith("%")}
    level = Level(
        name="run",
        loop="closed",
        concurrency=float(connections[1]) if connections else None,
        requests=answered,
        errors=None if answered is None else sum(many for code, many in statuses.items() if code >= "400"),
        duration_s=seconds,
        throughput_rps=answered / seconds if answered and seconds else None,
        mean_s=times.get("Avg"),
        max_s=times.get("Max"),
        percentiles_s={
            round(p / 100, 8): value for name, p in found.items() if p and (value := times[name]) is not None
        },
    )
    return Imported(
        path=str(source.path),
        format=TEXT_NAME,
        rows=Rows(read=1, kept=1, dropped={}),
        timing=Timing(unit="as printed", clock="none", scope="cumulative", basis="sent"),
        levels=(level,),
        notes=(*source.notes, "whole milliseconds; error replies are in the latencies"),
    )
