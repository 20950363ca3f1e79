"""What will one generator process send, and when? All of it decided before the start, so that nothing waits for it."""

from __future__ import annotations

import dataclasses
from array import array
from collections.abc import Mapping, Sequence
from typing import Any

from perfkit.errors import ConfigError
from perfkit.measuring.load.bursts import counted_dispersion, dispersion_index
from perfkit.measuring.load.loops import OpenLoop
from perfkit.measuring.load.mixes import Catalogue, payload_order, read_catalogue
from perfkit.measuring.load.payloads import RequestParts, build_request
from perfkit.measuring.load.replay import Due, read_schedule
from perfkit.measuring.load.schedule import arrival_offsets, replay_offsets
from perfkit.measuring.load.spec import LoadSpec
from perfkit.measuring.load.target import Target


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """`order` holds places in `requests`, to be repeated; `offsets_ns` is empty in a closed loop.

    A schedule file may ask for one body in several lanes: `requests` then holds every body once a lane.
    """

    requests: Sequence[RequestParts]
    order: Sequence[int]
    offsets_ns: Sequence[int]
    facts: Mapping[str, Any]
    """What the report says of payloads and arrivals; the same in every process of a load."""


def write_script(spec: LoadSpec, target: Target) -> Script:
    """Read payloads and schedule file, and draw the schedule; raises ConfigError."""
    catalogue = read_catalogue(spec.load.mix, spec.payloads)
    facts = catalogue.facts()
    if not isinstance(spec.load, OpenLoop):
        return _script(spec, target, catalogue, array("q"), facts)
    if spec.load.arrivals == "replay":
        return _replayed(spec, target, catalogue, read_schedule(spec.load.replay), facts)
    offsets_ns = arrival_offsets(spec.load, spec.seconds, spec.seed)
    if spec.load.arrivals == "bursty":
        facts["arrivals"] = _burstiness(spec.load, offsets_ns, spec.seconds)
    return _script(spec, target, catalogue, offsets_ns, facts)


def _script(
    spec: LoadSpec, target: Target, catalogue: Catalogue, offsets_ns: Sequence[int], facts: Mapping[str, Any]
) -> Script:
    lanes = [one.lane for one in catalogue.sets for _ in range(one.count)]
    return Script(
        requests=[
            build_request(target, body, spec.load, lane) for body, lane in zip(catalogue.bodies, lanes, strict=True)
        ],
        order=spec.share.of_cycle(payload_order(catalogue.sets, spec.seed)),
        offsets_ns=spec.share.of(offsets_ns),
        facts=facts,
    )


def _replayed(
    spec: LoadSpec, target: Target, catalogue: Catalogue, schedule: Sequence[Due], facts: Mapping[str, Any]
) -> Script:
    plain = _script(spec, target, catalogue, replay_offsets(schedule, spec.seconds), facts)
    order = plain.order
    if schedule[0].payload is not None:
        order = spec.share.of(array("q", (due.payload or 0 for due in schedule)))
        _check_known(schedule, len(catalogue.bodies))
    if schedule[0].lane is None:
        return dataclasses.replace(plain, order=order)
    lanes = sorted({due.lane or "" for due in schedule})
    turns = spec.share.of([lanes.index(due.lane or "") for due in schedule])
    count = len(catalogue.bodies)
    return Script(
        requests=[build_request(target, body, spec.load, lane) for lane in lanes for body in catalogue.bodies],
        order=array("q", (order[place % len(order)] + lane * count for place, lane in enumerate(turns))),
        offsets_ns=plain.offsets_ns,
        facts=facts,
    )


def _check_known(schedule: Sequence[Due], count: int) -> None:
    highest = max(due.payload or 0 for due in schedule)
    if highest >= count:
        raise ConfigError(
            f"the schedule file asks for payload {highest}; the payloads are {count}, numbered 0 to {count - 1}"
        )


def _burstiness(load: OpenLoop, offsets_ns: Sequence[int], seconds: float) -> dict[str, Any]:
    """The process as stated, its index of dispersion by the formula, and that of the schedule as drawn."""
    bursts, rate_rps = load.bursts, load.rate_rps
    return {
        "process": "two-state Markov-modulated Poisson",
        "burst_rps": rate_rps * bursts.burst_factor,
        "quiet_rps": rate_rps * bursts.quiet_factor,
        "dispersion_index": dispersion_index(bursts, rate_rps),
        "dispersion_index_1s": dispersion_index(bursts, rate_rps, 1.0),
        "drawn_dispersion_index_1s": counted_dispersion(offsets_ns, seconds),
    }
