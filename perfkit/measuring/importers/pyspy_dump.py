"""What did the threads do at the instant of a `py-spy dump`, as text or with `--json`?

One instant proves no cost. Threads that stand on the same line of a function may wait for one lock.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from perfkit.measuring.importers.document import load
from perfkit.measuring.importers.imported import Imported, Tally, Timing
from perfkit.measuring.importers.source import Source
from perfkit.measuring.importers.stacks import StackCounter

NAME = "py-spy dump"
_THREAD = re.compile(r"Thread (?P<id>\S+)(?: \((?P<state>[^)]*)\))?(?:: \"(?P<name>.*)\")?\s*")
_FRAME = re.compile(r"\s+(?P<name>\S.*) \((?P<place>[^()]*:\d+)\)\s*")
_RESTING = re.compile(r"wait|select|poll|accept|recv|sleep|\bget\b|join|acquire", re.IGNORECASE)
_STRAY = "line that is neither a thread nor a frame"
_NO_THREAD = "entry without frames"


@dataclasses.dataclass(slots=True)
class _Thread:
    name: str
    state: str
    frames: list[str]  # leaf first, as `function (file:line)`


def matches(head: str) -> bool:
    """By its first lines, or by the fields of the first thread."""
    text = head.lstrip()
    if text.startswith("["):
        return '"owns_gil"' in head and '"frames"' in head
    return text.startswith("Process ") and "\nPython v" in head and "\nThread " in head


def read(source: Source) -> Imported:
    """One profile whose samples are the threads."""
    tally = Tally()
    found = _of_json(source, tally) if source.head.lstrip().startswith("[") else _of_text(source, tally)
    threads = list(found)
    tally.kept = len(threads)
    counter = StackCounter()
    for thread in threads:
        counter.add([frame.partition(" (")[0] for frame in reversed(thread.frames)], 1, thread.name)
    states = Counter(thread.state for thread in threads)
    return Imported(
        path=str(source.path),
        format=NAME,
        rows=tally.rows(),
        timing=Timing(unit="threads", clock="one instant", scope="none", basis="none"),
        profiles=(counter.profile("threads at this instant", "threads", dict(states)),) if threads else (),
        notes=(*source.notes, *_shared_lines(threads)),
    )


def _of_text(source: Source, tally: Tally) -> Iterator[_Thread]:
    thread: _Thread | None = None
    for line in source.lines():
        if match := _THREAD.fullmatch(line):
            if thread:
                yield thread
            thread = _Thread(match["name"] or match["id"], match["state"] or "unknown", [])
        elif thread and (frame := _FRAME.fullmatch(line)):
            thread.frames.append(f"{frame['name']} ({frame['place']})")
        elif line.strip() and not line.startswith(("Process ", "Python v")) and not line.startswith("        "):
            tally.dropped[_STRAY] += 1
    if thread:
        yield thread


def _of_json(source: Source, tally: Tally) -> Iterator[_Thread]:
    entries = load(source, "a py-spy dump")
    for entry in entries if isinstance(entries, list) else []:
        try:
            frames = [
                f"{one['name']} ({one.get('short_filename') or one['filename']}:{one['line']})"
                for one in entry["frames"]
            ]
            state = "active+gil" if entry["owns_gil"] else "active" if entry["active"] else "idle"
            yield _Thread(str(entry.get("thread_name") or entry.get("os_thread_id")), state, frames)
        except (KeyError, TypeError, AttributeError):
            tally.dropped[_NO_THREAD] += 1


def _shared_lines(threads: Iterable[_Thread]) -> Iterator[str]:
    leaves = Counter(thread.frames[0] for thread in threads if thread.frames)
    for leaf, count in leaves.most_common():
        if count > 1 and not _RESTING.search(leaf.partition(" (")[0]):
            yield f"{count} threads stand on one line, {leaf}: do they wait for one lock?"
