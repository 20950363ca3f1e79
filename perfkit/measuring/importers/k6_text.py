"""What does the summary say that k6 prints at the end of a test? Each value carries its own unit."""

from __future__ import annotations

import re

from perfkit.measuring.importers.cells import duration_s, number
from perfkit.measuring.importers.imported import Imported, Level, Rows, Timing
from perfkit.measuring.importers.source import Source

NAME = "k6 text summary"
_LINE = re.compile(r"^\s*(?:✓|✗)?\s*(\w+)\.{2,}: (.*)$", re.MULTILINE)
_PAIR = re.compile(r"([\w().]+)=(\S+)")
_PERCENTILE = re.compile(r"p\((\d+(?:\.\d+)?)\)")


def matches(head: str) -> bool:
    """By the line of the latencies."""
    return bool(re.search(r"http_req_duration\.{2,}: ", head))


def read(source: Source) -> Imported:
    """One level."""
    lines = {name: text for name, text in reversed(_LINE.findall(source.whole()))}
    times = {name: duration_s(value) for name, value in _PAIR.findall(lines.get("http_req_duration", ""))}
    requests, rate = _pair(lines.get("http_reqs", ""))
    users = dict(_PAIR.findall(lines.get("vus_max", "")))
    found = {round(float(match[1]) / 100, 8): times[name] for name in times if (match := _PERCENTILE.fullmatch(name))}
    found[0.5] = times.get("med")
    unsent, _ = _pair(lines.get("dropped_iterations", ""))
    level = Level(
        name="run",
        loop="open" if unsent else "unknown",
        concurrency=number(users.get("max", "")),
        requests=None if requests is None else int(requests),
        errors=_failed(lines.get("http_req_failed", "")),
        unsent=None if unsent is None else int(unsent),
        duration_s=requests / rate if requests and rate else None,
        throughput_rps=rate,
        mean_s=times.get("avg"),
        min_s=times.get("min"),
        max_s=times.get("max"),
        percentiles_s={p: value for p, value in sorted(found.items()) if value is not None},
    )
    return Imported(
        path=str(source.path),
        format=NAME,
        rows=Rows(read=1, kept=1, dropped={}),
        timing=Timing(unit="as printed", clock="none", scope="cumulative", basis="sent"),
        levels=(level,),
        notes=(*source.notes, "latency leaves out the time to connect (http_req_duration)"),
    )


def _pair(text: str) -> tuple[float | None, float | None]:
    """`1379   344.5/s` -> both numbers."""
    words = text.split()
    return (number(words[0]), number(words[1])) if len(words) > 1 else (None, None)


def _failed(text: str) -> int | None:
    """`2.34% 63 out of 2691`; older versions print `✓ 63 ✗ 2628`, failures first."""
    match = re.search(r"(\d{1,15}) out of \d+", text) or re.search(r"✓ (\d{1,15})\s+✗ \d+", text)
    return int(match[1]) if match else None
