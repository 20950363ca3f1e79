"""What does a JMeter results file in XML say?

`t` is the whole time of a sample and `ts` its start, in milliseconds. A transaction is a `sample` around
its samplers, or beside them; it repeats them and is not counted. The file is read in pieces.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from perfkit.measuring.importers.imported import Imported, Tally, Timing
from perfkit.measuring.importers.jmeter import OF_TRANSACTION, TRANSACTION, start_of
from perfkit.measuring.importers.requests import RequestLog
from perfkit.measuring.importers.source import Source

NAME = "JMeter XML"
_SAMPLE = re.compile(r"<(httpSample|sample)\b([^<>]*?)(/?)>")
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
_ENTITIES = (("&quot;", '"'), ("&lt;", "<"), ("&gt;", ">"), ("&apos;", "'"), ("&amp;", "&"))
_NO_NUMBER = "no number in ts or t"
_DIGITS = 9


def matches(head: str) -> bool:
    """By its outermost element."""
    return "<testResults" in head[:2000]


def read(source: Source) -> Imported:
    """Samplers as requests."""
    tally, log, threads = Tally(), RequestLog(), 0
    for known in _samples(source):
        start_ns, elapsed = start_of(known.get("ts", "")), known.get("t", "")
        if known.get("rm", "").startswith(OF_TRANSACTION):
            tally.dropped[TRANSACTION] += 1
        elif start_ns is None or not elapsed.isdecimal() or len(elapsed) > _DIGITS:
            tally.dropped[_NO_NUMBER] += 1
        else:
            log.add(start_ns, int(elapsed) * 1_000_000, known.get("s") == "false", known.get("lb", ""))
            most = known.get("na", "")
            threads = max(threads, int(most)) if most.isdecimal() and len(most) <= _DIGITS else threads
    tally.kept = len(log)
    return Imported(
        path=str(source.path),
        format=NAME,
        rows=tally.rows(),
        timing=Timing(unit="ms", clock="epoch, at the start of a sample", scope="request", basis="sent"),
        levels=log.levels(loop="closed", concurrency=threads or None) if len(log) else (),
        requests=log.requests(),
        notes=tuple(source.notes),
    )


def _samples(source: Source) -> Iterator[dict[str, str]]:
    """Attributes of each sample; an element may run over several lines."""
    rest = ""
    for piece in source.chunks():
        text, end = rest + piece, 0
        for match in _SAMPLE.finditer(text):
            end = match.end()
            yield {name: _plain(value) for name, value in _ATTRIBUTE.findall(match[2])}
        rest = text[max(end, text.rfind("<")) :]


def _plain(text: str) -> str:
    for entity, sign in _ENTITIES:
        text = text.replace(entity, sign)
    return text
