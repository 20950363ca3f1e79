"""What do py-spy's own files hold, as the one form in which perfkit stores stacks?

A stacks document is plain data: pools of threads, frames and stacks (root first), and one entry a
sample that points into them. Which of py-spy's forms it comes from depends on the mode, because no
form keeps both the count and the time of a sample (checked with py-spy 0.4.3):

- *chrometrace* stamps changes only and joins equal neighbours. A thread that is skipped while it
  idles, or while it lacks the GIL, stays open until it is next seen: 0.45 s of work in 2 s reads as
  1.75 s. With every thread in every sample (`idle`) there is nothing to join wrongly, so `idle`
  recordings are read from it and have times on the host's clock.
- *speedscope* keeps every sample and its order, but no time, and py-spy's gaps are random. `default`
  and `gil` recordings are read from it: counts are exact and `time_ns` is null.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import takewhile
from math import ceil
from pathlib import Path
from typing import Any

from perfkit.clock import NS_PER_S

SCHEMA = 1
_NS_PER_US = 1_000
_US_PER_S = NS_PER_S // _NS_PER_US
_THREAD = re.compile(r"thread \((0x[0-9a-fA-F]+|\d+)\)(?:: (.*))?", re.DOTALL)
_LIBRARY = re.compile(r".*/(?:site-packages|dist-packages|lib/python\d+\.\d+)/")

Frame = tuple[str, str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """How a recording was made. `stopped_ns` is None when it ended by itself; `live_threads` are the
    native ids that were left at its end, None when nobody could tell."""

    mode: str
    rate_hz: int
    seconds: float
    sample_count: int
    error_count: int
    profiler_cpu_s: float | None
    attached_ns: int
    stopped_ns: int | None
    live_threads: frozenset[int] | None = None


@dataclass(slots=True)
class Pools:
    """Threads, frames and stacks, each stored once and known by its index. Used by one thread."""

    threads: dict[int, str] = field(default_factory=dict)
    frames: dict[Frame, int] = field(default_factory=dict)
    stacks: dict[tuple[int, ...], int] = field(default_factory=dict)
    thread_indices: dict[int, int] = field(default_factory=dict)

    def add(self, path: Sequence[Frame]) -> tuple[int, int]:
        """Indices of the thread that a path's root frame names, and of the stack below it."""
        thread_id, name = _thread_of(path[0][0])
        thread = self.thread_indices.setdefault(thread_id, len(self.thread_indices))
        self.threads.setdefault(thread_id, name)
        indices = tuple(self.frames.setdefault(frame, len(self.frames)) for frame in path[1:])
        return thread, self.stacks.setdefault(indices, len(self.stacks))


def _thread_of(root: str) -> tuple[int, str]:
    found = _THREAD.fullmatch(root)
    if found is None:
        raise ValueError(f"root frame is {root!r}; py-spy --threads puts 'thread (ID): NAME' there")
    return int(found[1], 0), found[2] or ""


@lru_cache(maxsize=4096)
def shorten_file(path: str) -> str:
    """The part of a path that names the module, and not where somebody's home is: from its library or package on."""
    library = _LIBRARY.match(path)
    if library is not None:
        return path[library.end() :]
    file = Path(path)
    packages = takewhile(lambda folder: (folder / "__init__.py").exists(), file.parents)
    return "/".join([*reversed([folder.name for folder in packages]), file.name])


def _frame(name: str, file: str | None, line: int | None) -> Frame:
    return name, shorten_file(file or ""), line or 0


def from_speedscope(document: dict[str, Any], circumstances: Circumstances) -> dict[str, Any]:
    """A stacks document of exact samples without times, thread by thread in order of sampling."""
    frames = [_frame(frame["name"], frame.get("file"), frame.get("line")) for frame in document["shared"]["frames"]]
    pools = Pools()
    seen: dict[tuple[int, ...], tuple[int, int]] = {}
    samples: list[tuple[int, int]] = []
    for profile in document["profiles"]:
        for sample in map(tuple, profile["samples"]):
            if sample not in seen:
                seen[sample] = pools.add([frames[index] for index in sample])
            samples.append(seen[sample])
    return _document(circumstances, pools, None, samples)


@dataclass(frozen=True, slots=True)
class Span:
    """A path of frames that a thread was seen in, from one microsecond to another."""

    started_us: int
    ended_us: int
    path: tuple[Frame, ...]


def from_chrometrace(events: list[dict[str, Any]], circumstances: Circumstances) -> dict[str, Any]:
    """A stacks document of every thread's state at each instant of a regular grid, on the host's clock."""
    events = [event for event in events if event["ph"] in "BE"]
    pools = Pools()
    if not events:
        return _document(circumstances, pools, [], [])
    first_us, last_us = events[0]["ts"], events[-1]["ts"]
    period_us = _US_PER_S / circumstances.rate_hz
    ticks: list[tuple[int, tuple[int, int]]] = []
    for span in _known_spans(events, circumstances.live_threads, period_us):
        inside = range(ceil((span.started_us - first_us) / period_us), ceil((span.ended_us - first_us) / period_us))
        if inside:
            member = pools.add(span.path)
            ticks += [(tick, member) for tick in inside]
    ticks.sort()
    zero_ns = _find_zero(circumstances, first_us, last_us)
    times = [zero_ns + round((first_us + tick * period_us) * _NS_PER_US) for tick, _ in ticks]
    return _document(circumstances, pools, times, [member for _, member in ticks])


def _find_zero(circumstances: Circumstances, first_us: int, last_us: int) -> int:
    """The host's time at py-spy's zero, early by about one gap between samples at most.

    The last stamp comes right after the stop. Without a stop the attaching has to do, which a busy machine
    may have noticed late.
    """
    if circumstances.stopped_ns is None:
        return circumstances.attached_ns - first_us * _NS_PER_US
    return circumstances.stopped_ns - last_us * _NS_PER_US


def _known_spans(events: list[dict[str, Any]], live: frozenset[int] | None, period_us: float) -> Iterator[Span]:
    """Spans, with the last one of a thread that has ended cut to one period: its end was never seen."""
    for spans in _spans(events).values():
        for span, following in zip(spans, [*spans[1:], None], strict=True):
            thread_id = _thread_of(span.path[0][0])[0]
            if following is not None:
                has_ended = following.path[0][0] != span.path[0][0]
            else:
                has_ended = live is not None and thread_id not in live
            limit_us = span.started_us + int(period_us) if has_ended else span.ended_us
            yield Span(span.started_us, min(span.ended_us, limit_us), span.path)


def _spans(events: list[dict[str, Any]]) -> dict[int, list[Span]]:
    """Each thread's paths in order. Events of one thread and one microsecond are one change."""
    spans: dict[int, list[Span]] = {}
    paths: dict[int, list[Frame]] = {}
    since: dict[int, int] = {}
    for event in events:
        thread, instant_us = event["tid"], event["ts"]
        path = paths.setdefault(thread, [])
        if path and instant_us > since[thread]:
            spans.setdefault(thread, []).append(Span(since[thread], instant_us, tuple(path)))
        since[thread] = instant_us
        if event["ph"] == "B":
            path.append(_frame(event["name"], event["args"].get("filename"), event["args"].get("line")))
        else:
            path.pop()
    return spans


def _document(
    circumstances: Circumstances, pools: Pools, times: list[int] | None, samples: list[tuple[int, int]]
) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "mode": circumstances.mode,
        "rate_hz": circumstances.rate_hz,
        "seconds": circumstances.seconds,
        "sample_count": len(samples),
        "profiler_sample_count": circumstances.sample_count,
        "error_count": circumstances.error_count,
        "profiler_cpu_s": circumstances.profiler_cpu_s,
        "threads": [{"id": thread_id, "name": name} for thread_id, name in pools.threads.items()],
        "frames": [{"name": name, "file": file, "line": line} for name, file, line in pools.frames],
        "stacks": [list(stack) for stack in pools.stacks],
        "samples": {
            "time_ns": times,
            "thread": [thread for thread, _ in samples],
            "stack": [stack for _, stack in samples],
        },
    }


def error_ratio(stacks: dict[str, Any]) -> float | None:
    """Which part of py-spy's looks at the process failed; a look that fails takes every thread's sample with it."""
    looks = stacks["rate_hz"] * stacks["seconds"]
    return min(1.0, stacks["error_count"] / looks) if looks > 0 else None


def folded(stacks: dict[str, Any]) -> list[str]:
    """One line a stack, `thread;root;…;leaf count`, sorted: the text form that other flame graph tools read.

    For use as a library; perfkit's own flame graph reads the document itself.
    """
    frames = [f"{frame['name']} ({frame['file']}:{frame['line']})" for frame in stacks["frames"]]
    threads = [f"{thread['name'] or 'thread'} ({thread['id']})" for thread in stacks["threads"]]
    samples = stacks["samples"]
    counts = Counter(zip(samples["thread"], samples["stack"], strict=True))
    lines = (
        _folded_line([threads[thread], *(frames[index] for index in stacks["stacks"][stack])], count)
        for (thread, stack), count in counts.items()
    )
    return sorted(lines)


def _folded_line(path: Iterable[str], count: int) -> str:
    """A semicolon parts frames and a line end parts stacks, so neither may stand inside a name."""
    return ";".join(" ".join(part.replace(";", ",").split()) for part in path) + f" {count}"
