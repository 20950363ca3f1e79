"""What does a request wish for beside its answer? A lane, and whether it shares its batch.

`Perfkit-Lane` names the lane; without lanes in the settings the header means nothing, so that the same
load can be sent at both. `Perfkit-Batch: off` asks for a batch of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from perfkit.serving.server.call import MalformedRequest
from perfkit.settings.queueing import DEFAULT_LANE, LaneSettings
from perfkit.settings.server import ServerSettings

LANE, BATCH = b"perfkit-lane", b"perfkit-batch"


class LaneEntry(NamedTuple):
    """A lane as the server knows it: its place in every list of lanes, and its settings with the gaps filled."""

    number: int
    name: str
    settings: LaneSettings
    depth: int | None
    deadline_s: float | None


Lanes = Mapping[bytes, LaneEntry]


class Wishes(NamedTuple):
    """What one request wishes for."""

    lane: int = 0
    is_alone: bool = False
    deadline_s: float | None = None  # what the lane allows


def known_lanes(settings: ServerSettings) -> Lanes | None:
    """The lanes by name; None when the settings have none.

    `default` is always among them: it takes the requests that name no lane.
    """
    if not settings.lanes:
        return None
    lanes = {DEFAULT_LANE: LaneSettings()} | dict(settings.lanes)
    return {
        name.encode(): LaneEntry(
            number=number,
            name=name,
            settings=lane,
            depth=settings.queue.depth if lane.depth is None else lane.depth,
            deadline_s=settings.queue.deadline_s if lane.deadline_s is None else lane.deadline_s,
        )
        for number, (name, lane) in enumerate(lanes.items())
    }


def read_wishes(headers: Mapping[bytes, bytes], lanes: Lanes | None, deadline_s: float | None) -> Wishes:
    """What the headers ask for; `deadline_s` holds where there are no lanes. Raises MalformedRequest."""
    batch = headers.get(BATCH, b"on")
    if batch not in (b"on", b"off"):
        raise MalformedRequest(400, "bad_batch", f"Perfkit-Batch is {_shown(batch)}; it takes on or off")
    if lanes is None:
        return Wishes(is_alone=batch == b"off", deadline_s=deadline_s)
    name = headers.get(LANE, DEFAULT_LANE.encode())
    lane = lanes.get(name)
    if lane is None:
        known = ", ".join(sorted(entry.name for entry in lanes.values()))
        raise MalformedRequest(400, "unknown_lane", f"Perfkit-Lane is {_shown(name)}; known: {known}")
    return Wishes(lane.number, batch == b"off", lane.deadline_s)


def _shown(value: bytes) -> str:
    return repr(value[:80].decode("latin-1"))
