"""What does a speedscope file say? One profile a thread, sampled or evented, each with its unit.

Threads are sampled side by side, so their weights add up to more than the time that passed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perfkit.measuring.importers.document import as_figure, figure, items, load_object, part
from perfkit.measuring.importers.imported import Imported, Tally, Timing
from perfkit.measuring.importers.source import Source
from perfkit.measuring.importers.stacks import StackCounter

NAME = "speedscope JSON"
_SIZES = {"nanoseconds": 1e-9, "microseconds": 1e-6, "milliseconds": 1e-3, "seconds": 1.0}
_UNKNOWN_FRAME = "stack with a frame that the file does not name"
_NO_WEIGHT = "stack without a weight"
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
    document = load_object(source, "a speedscope file")
    names = [
        str(frame.get("name")) if isinstance(frame, dict) else "" for frame in items(part(document, "shared"), "frames")
    ]
    for profile in items(document, "profiles"):
        size, unit = _unit(profile)
        counter = counters.setdefault(unit, StackCounter())
        _take(profile, names, size, counter, tally)
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


def _unit(profile: object) -> tuple[float, str]:
    name = str(profile.get("unit", "none")) if isinstance(profile, dict) else "none"
    return (_SIZES[name], "s") if name in _SIZES else (1.0, "samples" if name == "none" else name)


def _take(profile: object, names: Sequence[str], size: float, counter: StackCounter, tally: Tally) -> None:
    thread = str(profile.get("name", "")) if isinstance(profile, dict) else ""
    is_evented = isinstance(profile, dict) and profile.get("type") == "evented"
    for stack, weight in _evented(profile, tally) if is_evented else _sampled(profile):
        value = as_figure(weight)
        if value is None or not isinstance(stack, (list, tuple)):
            tally.dropped[_NO_WEIGHT] += 1
        elif any(not isinstance(frame, int) or not 0 <= frame < len(names) for frame in stack):
            tally.dropped[_UNKNOWN_FRAME] += 1
        else:
            counter.add([names[frame] for frame in stack], value * size, thread or "(no name)")
            tally.kept += 1


def _sampled(profile: object) -> Iterator[tuple[object, object]]:
    yield from zip(items(profile, "samples"), items(profile, "weights"), strict=False)


def _evented(profile: object, tally: Tally) -> Iterator[tuple[object, object]]:
    """The time between two events belongs to the stack that is open."""
    open_frames: list[object] = []
    timed = [(at, event) for event in items(profile, "events") if (at := figure(event, "at")) is not None]
    before = figure(profile, "startValue") or 0.0
    for at, event in sorted(timed, key=lambda one: one[0]):
        if open_frames and at > before:
            yield tuple(open_frames), at - before
        before, frame = at, event.get("frame")
        if event.get("type") == "O":
            open_frames.append(frame)
        elif frame in open_frames:
            del open_frames[len(open_frames) - 1 - open_frames[::-1].index(frame)]
        else:
            tally.dropped[_UNPAIRED] += 1
