"""Do the rates, counts and concurrencies of a result agree with each other?"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from perfkit.measuring.importers.finding import Figures, Finding
from perfkit.measuring.importers.imported import Imported, Level
from perfkit.units import format_duration, format_number, format_percent, format_rate

ABOVE = 0.05  # judgement: rate and mean rounded to two digits each
BELOW = 0.25  # judgement: start and end of a short run leave clients idle for some of it
_APART = 0.05  # between a rate and count / duration; tools leave the run's edges out of one of them
_LEAST_COUNT = 20  # requests: with fewer, it matters whether a rate counts them or the gaps between them
_EDGE_S = 0.2  # a run's ends: a count over whole seconds misses up to that much
_REACHED = 0.95  # of the offered rate
_STILL_LINEAR = 0.5  # d ln X / d ln N on the last step: at saturation it nears 0
_LEAST_LEVELS = 3
_NEW_CONNECTIONS = 0.5  # share of requests that opened one

_LITTLE = "Little 1961: requests in flight = throughput × mean latency"
SOURCES = {
    "little": ("in a closed loop no more requests are in flight than there are clients", _LITTLE),
    "idle_clients": ("clients without a think time are always waiting for a reply", _LITTLE),
    "connections": ("no more requests are in flight than the connections can carry", _LITTLE),
    "rate": ("throughput = answered requests / duration", "arithmetic"),
    "load_not_delivered": (
        "an open-loop latency holds for the load that was sent",
        "Schroeder, Wierman, Harchol-Balter, NSDI 2006: open and closed loops answer differently",
    ),
    "no_knee": (
        "a capacity is known once throughput stops following the load",
        "asymptotic bounds of a closed network: X ≤ min(N / (D + Z), 1 / D_max)",
    ),
    "keep_alive": (
        "a client that reuses connections opens one per client, not one per request",
        "persistent connections of HTTP/1.1, RFC 9112 section 9.3",
    ),
}


def in_flight(level: Level) -> Iterator[Finding]:
    """Throughput × mean latency against the clients or connections."""
    clients, rate, mean = level.concurrency, _replies_rps(level), level.mean_s
    if not clients or rate is None or mean is None:
        return
    flying = rate * mean
    figures = {"in_flight": flying, "concurrency": clients, "throughput_rps": rate, "mean_s": mean}
    product = f"{format_rate(rate)} × {format_duration(mean)} = {format_number(flying)} requests in flight"
    if flying > clients * (1 + ABOVE):
        check = "connections" if level.loop == "open" else "little"
        yield _finding(check, level, f"{product}, more than the {clients:g} there can be", figures)
    elif level.loop == "closed" and level.has_think_time is False and flying < clients * (1 - BELOW):
        claim = f"{product} of {clients:g}: clients waited for replies that the figures leave out"
        yield _finding("idle_clients", level, claim, figures)


def rate_of_count(level: Level) -> Iterator[Finding]:
    """The stated rate against count and duration."""
    rate, count, seconds = level.throughput_rps, level.requests, level.duration_s
    if not rate or not count or not seconds or count < _LEAST_COUNT:
        return
    good = count - (level.errors or 0)
    least, most = good / (seconds + _EDGE_S), count / max(seconds - _EDGE_S, 1e-9)
    if not least * (1 - _APART) <= rate <= most * (1 + _APART):
        counted = f"{count:,} requests in {format_duration(seconds)} are {format_rate(count / seconds)}"
        figures = {"throughput_rps": rate, "requests": count, "duration_s": seconds, "expected_rps": count / seconds}
        yield _finding("rate", level, f"{format_rate(rate)}, but {counted}", figures)


def delivered(level: Level) -> Iterator[Finding]:
    """Whether the planned load was sent."""
    offered, served = level.offered_rps, level.throughput_rps
    if level.unsent:
        planned = level.unsent + (level.requests or 0)
        claim = (
            f"{level.unsent:,} of {planned:,} planned requests were never sent: the latency is that of a smaller load"
        )
        yield _finding("load_not_delivered", level, claim, {"unsent": level.unsent, "planned": planned})
    elif offered and served is not None and served < _REACHED * offered:
        claim = (
            f"{format_rate(served)} of {format_rate(offered)} offered were served: the latency is of no steady state"
        )
        yield _finding("load_not_delivered", level, claim, {"throughput_rps": served, "offered_rps": offered})


def keep_alive(level: Level) -> Iterator[Finding]:
    """Whether requests opened connections of their own."""
    opened, count = level.new_connections, level.requests
    if opened is None or not count or opened <= max(level.concurrency or 1, _NEW_CONNECTIONS * count):
        return
    share = f"{opened:,} of {count:,} requests ({format_percent(opened / count)}) opened a connection"
    claim = f"{share}: keep-alive is off, and its cost is in the latency"
    yield _finding("keep_alive", level, claim, {"new_connections": opened, "requests": count})


def knee(imported: Imported) -> Iterator[Finding]:
    """Whether the range of a scan reaches saturation."""
    points = sorted(
        (level.concurrency or 0.0, level.throughput_rps or 0.0)
        for level in imported.levels
        if (level.concurrency or 0) > 0 and (level.throughput_rps or 0) > 0
    )
    distinct = {clients for clients, _ in points}
    if not imported.is_range or len(points) < _LEAST_LEVELS or len(distinct) < len(points):
        return  # the same load twice: several services in one table
    slopes = [math.log(x2 / x1) / math.log(n2 / n1) for (n1, x1), (n2, x2) in itertools.pairwise(points)]
    if min(slopes) > _STILL_LINEAR:
        most, best = points[-1]
        claim = f"throughput still grows at concurrency {most:g} ({format_rate(best)}): the knee lies beyond the range"
        figures = {"last_slope": slopes[-1], "concurrency": most, "throughput_rps": best}
        rule, source = SOURCES["no_knee"]
        yield Finding(check="no_knee", row=None, claim=claim, figures=figures, rule=rule, source=source)


LEVEL_RULES = (in_flight, rate_of_count, delivered, keep_alive)
FILE_RULES = (knee,)


def _replies_rps(level: Level) -> float | None:
    """Replies of every kind a second, since the mean latency covers them all."""
    if level.requests and level.duration_s:
        return level.requests / level.duration_s
    return level.throughput_rps


def _finding(check: str, level: Level, claim: str, figures: Figures) -> Finding:
    rule, source = SOURCES[check]
    return Finding(
        check=check, row=level.row, claim=f"{level.name}: {claim}", figures=figures, rule=rule, source=source
    )
