"""What does a speedscope file say? One profile a thread, sampled or evented, each with its unit.

Threads are sampled side by side, so their weights add up to more than the time that passed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from perfkit.errors import ConfigError
from perfkit.measuring.importers.imported import Imported, Tally, Timing
from perfkit.measuring.importers.source import Source
from perfkit.measuring.importers.stacks import StackCounter

NAME = "speedscope JSON"
_SIZES = {"nanoseconds": 1e-9, "microseconds": 1e-6, "milliseconds": 1e-3, "seconds": 1.0}
_UNKNOWN_FRAME = "stack with a frame that the file does not name"
_UNPAIRED = "closing event without its opening"


def matches(head: str) -> bool:
    """By the address of its schema, or its two parts."""
    return head.lstrip().startswith("{") and (
        "speedscope.app/file-format-schema" in head
        or ('"shared"' in head and '"frames"' in head and '"profiles"' in head)
    )


def read(source: Source) -> Imported:
    """All threads together, a profile for each unit; raises ConfigError on a document that is cut."""
    tally = Tally()
    counters: dict[str, StackCounter] = {}
    try:
        document = orjson.loads(source.whole())
        names = [str(frame["name"]) for frame in document["shared"]["frames"]]
        for profile in document["profiles"]:
            size, unit = _unit(profile.get("unit", "none"))
            counter = counters.setdefault(unit, StackCounter())
            _take(profile, names, size, counter, tally)
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(
            f"{source.path}: a speedscope file that is cut or broken ({error}); record it again"
        ) from None
    notes = [*source.notes, "threads are sampled side by side: their weights add up to more than the time that passed"]
    if empty := sum(one.empty for one in counters.values()):
        notes.append(f"{empty} empty stacks: they weigh, but name no function")
    return Imported(
        path=str(source.path),
        format=NAME,
        rows=tally.rows(),
        timing=Timing(
            unit=", ".join(counters) or "none", clock="since the start of the profile", scope="none", basis="none"
        ),
        profiles=tuple(one.profile("all threads", unit) for unit, one in counters.items() if one.samples),
        notes=tuple(notes),
    )


def _unit(name: str) -> tuple[float, str]:
    return (_SIZES[name], "s") if name in _SIZES else (1.0, "samples" if name == "none" else name)


def _take(profile: dict[str, Any], names: Sequence[str], size: float, counter: StackCounter, tally: Tally) -> None:
    thread = str(profile.get("name", "")) or "(no name)"
    stacks = _sampled(profile) if profile["type"] == "sampled" else _evented(profile, tally)
    for stack, weight in stacks:
        if any(not 0 <= frame < len(names) for frame in stack):
            tally.dropped[_UNKNOWN_FRAME] += 1
            continue
        counter.add([names[frame] for frame in stack], weight * size, thread)
        tally.kept += 1


def _sampled(profile: dict[str, Any]) -> Iterator[tuple[Sequence[int], float]]:
    yield from zip(profile["samples"], profile["weights"], strict=False)


def _evented(profile: dict[str, Any], tally: Tally) -> Iterator[tuple[Sequence[int], float]]:
    """The time between two events belongs to the stack that is open."""
    open_frames: list[int] = []
    at = float(profile.get("startValue", 0))
    for event in sorted(profile["events"], key=lambda event: float(event["at"])):
        if open_frames and event["at"] > at:
            yield tuple(open_frames), float(event["at"]) - at
        at = float(event["at"])
        if event["type"] == "O":
            open_frames.append(int(event["frame"]))
        elif event["frame"] in open_frames:
            del open_frames[len(open_frames) - 1 - open_frames[::-1].index(event["frame"])]
        else:
            tally.dropped[_UNPAIRED] += 1
