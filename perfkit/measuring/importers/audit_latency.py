"""Can the latencies of a result be what they are called?"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator, Sequence

from perfkit.measuring.analysis.floors import floor_count
from perfkit.measuring.importers.finding import Figures, Finding
from perfkit.measuring.importers.imported import Imported, Level, percent_name
from perfkit.units import format_duration, format_percent

_SLACK = 0.01  # relative: figures are printed rounded
_MEAN_SLACK = 0.03  # relative: the bounds add up several rounded figures
_TIMEOUTS_S = (1.0, 2.0, 3.0, 5.0, 10.0, 15.0, 20.0, 30.0, 60.0, 90.0, 120.0)  # round values that clients are set to
_PAST, _BEFORE = 0.01, 0.0005  # how far from a round value a latency still is one, relative
_LEFT_OUT = 0.001  # share of timed-out requests from which the P99.9 is not what it says
_PLATEAU = 1.05  # ratio of neighbouring percentiles that are one value
_LEAST_COUNT = 100  # requests: with fewer, tools differ in which one they call the P25
_FASTER = 0.7  # mean of errors / mean of successes
_LEAST_ERRORS = 5
_TWO_DIGITS = 0.06  # relative: two significant digits move a figure by at most 5 %
_SAME = 0.005
_WHOLE = ("aggregated", "total", "overall", "all requests", "合计", "总计")

SOURCES = {
    "order": ("min ≤ P50 ≤ P90 ≤ P99 ≤ max, and min ≤ mean ≤ max", "definition of a quantile"),
    "mean_bounds": (
        "the mean lies between what the percentiles demand and what they and the maximum allow",
        "a share p of the requests is at most as slow as the percentile p",
    ),
    "rounded": (
        "a percentile is one of the measured latencies",
        "Locust keeps two significant digits of each response time (locustio/locust#331)",
    ),
    "averaged": (
        "percentiles cannot be averaged: that of a whole is found in the raw latencies",
        "Treadmill, ISCA 2016",
    ),
    "too_few": (
        "a P99 needs 473 independent requests, a P95 93, a P90 46",
        "early-stopping rule of MLPerf's load generator at 95 % confidence",
    ),
    "fast_errors": (
        "a request that fails at once says nothing of the service's speed",
        "latencies of errors are reported apart",
    ),
    "censored": ("a latency cut off by the client's time-out is only a lower bound", "censored observations"),
}


def order(level: Level) -> Iterator[Finding]:
    """Percentiles that go down, or lie outside minimum and maximum."""
    percentiles = ((percent_name(p), value) for p, value in sorted(level.percentiles_s.items()))
    ladder = [("min", level.min_s), *percentiles, ("max", level.max_s)]
    steps = [(name, value) for name, value in ladder if value is not None]
    for (low, low_s), (high, high_s) in itertools.pairwise(steps):
        if low_s > high_s * (1 + _SLACK):
            check = "rounded" if high == "max" and low_s / (high_s or low_s) - 1 <= _TWO_DIGITS else "order"
            claim = f"{_title(low)} {format_duration(low_s)} is above {_title(high)} {format_duration(high_s)}"
            yield _finding(check, level, claim, {f"{low}_s": low_s, f"{high}_s": high_s})
    mean, least, most = level.mean_s, level.min_s, level.max_s
    if mean is None or least is None or most is None or least * (1 - _SLACK) <= mean <= most * (1 + _SLACK):
        return
    claim = f"mean {format_duration(mean)} lies outside {format_duration(least)} to {format_duration(most)}"
    yield _finding("order", level, claim, {"mean_s": mean, "min_s": least, "max_s": most})


def mean_bounds(level: Level) -> Iterator[Finding]:
    """A mean above the one that the percentiles and the maximum allow, or below what they demand."""
    steps, mean = sorted(level.percentiles_s.items()), level.mean_s
    if (
        mean is None
        or not steps
        or level.is_interpolated
        or (level.requests is not None and level.requests < _LEAST_COUNT)
    ):
        return
    least = _least_mean_s(steps)
    if mean < least * (1 - _MEAN_SLACK):
        claim = f"mean {format_duration(mean)} is below the least that its percentiles allow, {format_duration(least)}"
        yield _finding("mean_bounds", level, claim, {"mean_s": mean, "least_s": least})
    most = None if level.max_s is None else _most_mean_s([*steps, (1.0, level.max_s)])
    if most is not None and mean > most * (1 + _MEAN_SLACK):
        claim = f"mean {format_duration(mean)} is above the most that its percentiles allow, {format_duration(most)}"
        yield _finding("mean_bounds", level, claim, {"mean_s": mean, "most_s": most})


def rounded(level: Level) -> Iterator[Finding]:
    """A P50 that is not the median which the same row gives."""
    p50, median = level.percentile(0.5), level.median_s
    if p50 and median and 0.001 < abs(p50 / median - 1) <= _TWO_DIGITS:
        beside = f"P50 {format_duration(p50)} beside a median of {median:.6g} s"
        yield _finding("rounded", level, f"{beside}: percentiles are rounded", {"p50_s": p50, "median_s": median})


def too_few(level: Level) -> Iterator[Finding]:
    """A high percentile from fewer requests than it takes."""
    stated = sorted(p for p in level.percentiles_s if 0.9 <= p <= 0.99)
    lacking = [p for p in stated if _effective(level, p) < floor_count(p)]
    if level.requests is None or not lacking:
        return
    worst = lacking[-1]
    count, floor = _effective(level, worst), floor_count(worst)
    is_all = round(count) == level.requests
    kind = f"{count:,.0f} requests" if is_all else f"{count:,.0f} independent ones of {level.requests:,} requests"
    names = ", ".join(_title(percent_name(p)) for p in lacking)
    claim = f"{names} from {kind}; {_title(percent_name(worst))} takes {floor:,}"
    yield _finding("too_few", level, claim, {"requests": count, "floor": floor})


def fast_errors(level: Level) -> Iterator[Finding]:
    """Errors that answer sooner than successes and so flatter the mean and the percentiles."""
    good, bad, errors = level.good_mean_s, level.error_mean_s, level.errors or 0
    if not good or bad is None or errors < _LEAST_ERRORS or bad >= _FASTER * good:
        return
    share = format_percent(errors / level.requests) if level.requests else f"{errors:,}"
    means = f"errors took {format_duration(bad)} on average, successes {format_duration(good)}"
    claim = f"{means}: the errors ({share}) make all figures look faster"
    yield _finding("fast_errors", level, claim, {"error_mean_s": bad, "good_mean_s": good, "errors": errors})


def censored(level: Level) -> Iterator[Finding]:
    """A percentile that sits on a round time-out while requests failed, or time-outs left out of the percentiles."""
    if not level.errors and not level.timeouts:
        return
    stuck = [(p, value) for p, value in _plateaus(level) if p >= 0.9 and _is_timeout(value)]
    missing, count = level.timeouts or 0, level.requests or 0
    if stuck:
        p, value = stuck[0]
        name = percent_name(p)
        claim = f"{_title(name)} {format_duration(value)} is the client's time-out: the latency is longer and unknown"
        yield _finding("censored", level, claim, {f"{name}_s": value, "errors": level.errors})
    elif level.percentiles_s and missing > _LEFT_OUT * (count + missing):
        claim = f"{missing:,} requests timed out and are not in the percentiles: the tail is missing"
        yield _finding("censored", level, claim, {"timeouts": missing, "requests": count})


def averaged(imported: Imported) -> Iterator[Finding]:
    """A row for the whole whose percentile is the mean of the rows' percentiles."""
    parts = [level for level in imported.levels if not _is_whole(level)]
    for level in imported.levels if len(parts) > 1 else ():
        if not _is_whole(level):
            continue
        for p in (p for p in level.percentiles_s if p > 0.5 and _is_mean_of(level, parts, p)):
            own = level.percentiles_s[p]
            name = percent_name(p)
            claim = f"{_title(name)} {format_duration(own)} is the mean of the {len(parts)} rows' {_title(name)}"
            yield _finding("averaged", level, claim, {f"{name}_s": own, "rows": len(parts)})


LEVEL_RULES = (order, mean_bounds, rounded, too_few, fast_errors, censored)
FILE_RULES = (averaged,)


def _least_mean_s(steps: Sequence[tuple[float, float]]) -> float:
    """Every request as fast as the percentile below it allows."""
    ends = [p for p, _ in steps[1:]] + [1.0]
    return sum((end - p) * value for (p, value), end in zip(steps, ends, strict=True))


def _most_mean_s(steps: Sequence[tuple[float, float]]) -> float:
    """Every request as slow as the percentile above it allows."""
    starts = [0.0] + [p for p, _ in steps[:-1]]
    return sum((p - start) * value for (p, value), start in zip(steps, starts, strict=True))


def _plateaus(level: Level) -> Iterator[tuple[float, float]]:
    """Percentiles that the next one hardly exceeds, with enough failures to fill what lies beyond them."""
    steps = [*sorted(level.percentiles_s.items()), *([(1.0, level.max_s)] if level.max_s is not None else [])]
    failed = (level.errors or 0) / level.requests if level.requests else 1.0
    for (p, value), (_, following) in itertools.pairwise(steps):
        if following <= value * _PLATEAU and failed >= (1 - p) / 2:
            yield p, value


def _effective(level: Level, p: float) -> float:
    """Independent requests behind a percentile; those that never got an answer are not among them."""
    if p in level.quantiles:
        return level.quantiles[p].n_eff
    return (level.requests or 0) - (level.timeouts or 0)


def _title(name: str) -> str:
    """p99 -> P99, as people write it; max stays max."""
    return name.upper() if name.startswith("p") else name


def _is_timeout(value_s: float) -> bool:
    return any(-_BEFORE <= value_s / limit - 1 <= _PAST for limit in _TIMEOUTS_S)


def _is_whole(level: Level) -> bool:
    return any(word in level.name.lower() for word in _WHOLE)


def _is_mean_of(level: Level, parts: Sequence[Level], p: float) -> bool:
    values = [part.percentiles_s[p] for part in parts if p in part.percentiles_s]
    if len(values) < len(parts) or max(values) <= min(values) * (1 + _TWO_DIGITS):
        return False
    counts = [part.requests or 0 for part in parts]
    means = [statistics.fmean(values), *([statistics.fmean(values, counts)] if all(counts) else [])]
    return any(mean and abs(level.percentiles_s[p] / mean - 1) <= _SAME for mean in means)


def _finding(check: str, level: Level, claim: str, figures: Figures) -> Finding:
    rule, source = SOURCES[check]
    return Finding(
        check=check, row=level.row, claim=f"{level.name}: {claim}", figures=figures, rule=rule, source=source
    )
