"""When does each request leave, and when may each user send? Pure, and decided before the start.

The same seed gives the same schedule. Think times are the one thing drawn during a run, since they
start when a reply comes; their sequence is seeded too.
"""

from __future__ import annotations

import itertools
import math
import random
from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from perfkit.clock import NS_PER_S
from perfkit.errors import ConfigError
from perfkit.measuring.load.bursts import burst_spans
from perfkit.measuring.load.loops import ClosedLoop, OpenLoop
from perfkit.measuring.load.replay import Due
from perfkit.measuring.load.shape import Step
from perfkit.measuring.load.share import Share

LEAST_COVERED_RATIO = 0.5  # judgement: a schedule that ends sooner was meant for a shorter run
_WITH_WARMUP = 1.1  # load is applied for a tenth longer than is measured


class Piece(NamedTuple):
    """A span of an open loop's time in which its rate is constant or goes along a line."""

    start_s: float
    end_s: float
    from_rps: float
    to_rps: float


class Shift(NamedTuple):
    """A time in which a user of a closed loop takes part, in nanoseconds after the start; the end is not part of it."""

    start_ns: int
    end_ns: int


class UserPlan(NamedTuple):
    """What one process's users of a closed loop do: first sends, pauses, and when each takes part."""

    first_ns: Sequence[int]
    pauses_ns: Iterator[int]
    thinks: bool
    shifts: Sequence[Sequence[Shift]]


def arrival_offsets(load: OpenLoop, seconds: float, seed: int) -> array[int]:
    """Nanoseconds after the start at which each request of an open loop is due; the first is not at 0.

    Not for a replay, whose instants are in its file.
    """
    source = random.Random(f"arrivals {seed}")
    gaps = itertools.repeat(1.0) if load.arrivals == "constant" else iter(lambda: source.expovariate(1.0), None)
    end_ns = round(seconds * NS_PER_S)
    offsets = _offsets(rate_pieces(load, seconds, seed), gaps)
    return array("q", itertools.takewhile(lambda offset_ns: offset_ns < end_ns, offsets))


def _offsets(pieces: Sequence[Piece], gaps: Iterator[float]) -> Iterator[int]:
    """The process of unit rate, stretched to the rates of the pieces: inversion of the summed rate."""
    due = next(gaps)
    for start_s, end_s, from_rps, to_rps in pieces:
        arrivals = (from_rps + to_rps) / 2 * (end_s - start_s)
        squared, bend = from_rps * from_rps, 2 * (to_rps - from_rps) / (end_s - start_s)
        while due < arrivals:
            yield round((start_s + 2 * due / (from_rps + math.sqrt(max(0.0, squared + bend * due)))) * NS_PER_S)
            due += next(gaps)
        due -= arrivals


def rate_pieces(load: OpenLoop, seconds: float, seed: int) -> list[Piece]:
    """The rate of an open loop over its time: that of the profile's steps, times that of bursts."""
    spans = [(seconds, 1.0)]
    if load.arrivals == "bursty":
        spans = list(burst_spans(load.bursts, seconds, random.Random(f"bursts {seed}")))
    pieces = []
    for step in load.steps:
        start_s, end_s = step.start_ratio * seconds, step.end_ratio * seconds
        before_s = 0.0
        for until_s, factor in spans:
            low_s, high_s = max(start_s, before_s), min(end_s, until_s)
            if low_s < high_s:
                levels = (_level_at(step, at_s, (start_s, end_s)) * factor for at_s in (low_s, high_s))
                pieces.append(Piece(low_s, high_s, *levels))
            before_s = until_s
    return pieces


def _level_at(step: Step, at_s: float, span_s: tuple[float, float]) -> float:
    start_s, end_s = span_s
    if step.is_level:
        return step.to_level
    return step.from_level + (step.to_level - step.from_level) * (at_s - start_s) / (end_s - start_s)


def replay_offsets(schedule: Sequence[Due], seconds: float) -> array[int]:
    """The instants of a schedule file before the end; raises ConfigError where the file is far shorter than that."""
    covered_s = schedule[-1].at_ns / NS_PER_S
    if covered_s < LEAST_COVERED_RATIO * seconds:
        raise ConfigError(
            f"the schedule file ends after {covered_s:g} s and load is applied for {seconds:g} s, warm-up included; "
            f"measure for {covered_s / _WITH_WARMUP:.4g} s, or give a longer file"
        )
    end_ns = round(seconds * NS_PER_S)
    return array("q", itertools.takewhile(lambda at_ns: at_ns < end_ns, (due.at_ns for due in schedule)))


def plan_users(load: ClosedLoop, seconds: float, share: Share) -> UserPlan:
    """What a process's share of a closed loop's users will do."""
    return UserPlan(
        first_ns=first_thoughts_ns(load, share),
        pauses_ns=think_times_ns(load, share),
        thinks=load.think_time_s > 0,
        shifts=user_shifts(load, seconds)[share.index :: share.count],
    )


def user_shifts(load: ClosedLoop, seconds: float) -> list[list[Shift]]:
    """For each user of a closed loop when it takes part: while the level is above the number of users before it."""
    return [_shifts_of(user, load.steps, seconds) for user in range(load.peak_users)]


def _shifts_of(user: int, steps: Sequence[Step], seconds: float) -> list[Shift]:
    shifts: list[Shift] = []
    for step in steps:
        low, high = _span_above(user, step)
        start_ns, end_ns = (round(ratio * seconds * NS_PER_S) for ratio in (low, high))
        if start_ns >= end_ns:
            continue
        if shifts and shifts[-1].end_ns == start_ns:
            start_ns = shifts.pop().start_ns
        shifts.append(Shift(start_ns, end_ns))
    return shifts


def _span_above(user: int, step: Step) -> tuple[float, float]:
    """The part of a step in which its level is above a number, in shares of the profile's time."""
    if step.is_level:
        return (step.start_ratio, step.end_ratio) if step.to_level > user else (0.0, 0.0)
    crossing = (user - step.from_level) / (step.to_level - step.from_level)
    at = step.start_ratio + min(1.0, max(0.0, crossing)) * (step.end_ratio - step.start_ratio)
    return (at, step.end_ratio) if step.to_level > step.from_level else (step.start_ratio, at)


def think_times_ns(load: ClosedLoop, share: Share) -> Iterator[int]:
    """The pauses that users make after a reply, in the order in which they are needed; endless."""
    mean_ns = load.think_time_s * NS_PER_S
    source = random.Random(share.own_seed("think"))
    while True:
        yield round(source.expovariate(1 / mean_ns) if mean_ns and load.think == "exponential" else mean_ns)


def first_thoughts_ns(load: ClosedLoop, share: Share) -> Sequence[int]:
    """How long after the start each user sends first: spread over one think time, else they march in step."""
    source = random.Random(f"first {share.seed}")
    return share.of([round(source.uniform(0, load.think_time_s) * NS_PER_S) for _ in range(load.peak_users)])
