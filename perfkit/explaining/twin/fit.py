"""Which few numbers describe a service, given measured cells: a call's time, the host's parts, contention?

The time of a call with b requests is H(b) = alpha + beta · b, fitted to the mean times by size of the cells with one
worker, by least squares of the relative error, so that small and large batches count alike. Where more workers
compute at once each call takes H(b) · (1 + corun · (others)). Intervals come from the rounds, each fitted alone
(Student, 95 %).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from perfkit.errors import TargetFailed
from perfkit.explaining.twin.observed import Calls, Observed
from perfkit.measuring.analysis.blocks import Floats, Interval, mean_interval
from perfkit.measuring.analysis.scaling.batch_model import solve_line

_LEAST_CALLS = 5  # judgement: a size that was seen less often has no mean worth fitting to


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The host's parts in seconds: `serial` is work that one thread at a time does, `parallel` waits of any number."""

    preprocess_serial_s: float
    preprocess_parallel_s: float
    call_serial_s: float
    call_parallel_s: float
    postprocess_serial_s: float
    postprocess_parallel_s: float
    server_serial_s: float
    pause_s: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SizeMean:
    """Mean time of the calls of one size, what the fit says, and how many calls there were."""

    size: int
    mean_s: float
    fitted_s: float
    calls: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The fitted numbers. `residual_ratio` is the root mean square of the relative errors of the sizes' means."""

    alpha_s: Interval
    beta_s: Interval
    corun_ratio: Interval
    residual_ratio: float
    sizes: tuple[SizeMean, ...]
    host: Host
    h2d_s: float  # of a request, as a mean over the requests of the cell with the largest batches; 0 = none
    d2h_s: float


def fit(cells: Sequence[Observed], slots: int) -> Fit:
    """Fit cells of one worker (H and host) and of several (contention); raises TargetFailed without enough calls."""
    alone = [cell for cell in cells if cell.workers == 1]
    if not alone:
        raise TargetFailed("no call of one worker alone was measured; measure for longer with --seconds")
    calls = _joined(cell.calls for cell in alone)
    means = size_means(calls)
    if len(means) < 2:
        raise TargetFailed(
            f"the calls have {len(means)} sizes that were seen {_LEAST_CALLS} times or more, two are the least that a "
            "line needs; measure for longer with --seconds, or with more users"
        )
    alpha_s, beta_s = fit_line(means)
    rounds = [size_means(_of_round(calls, number)) for number in np.unique(calls.rounds)]
    lines = np.array([fit_line(of_round) for of_round in rounds if len(of_round) > 1])
    fitted = tuple(
        SizeMean(size=int(size), mean_s=mean_s, fitted_s=alpha_s + beta_s * size, calls=count)
        for size, mean_s, count in means
    )
    return Fit(
        alpha_s=_around(alpha_s, lines[:, 0] if len(lines) else np.array([])),
        beta_s=_around(beta_s, lines[:, 1] if len(lines) else np.array([])),
        corun_ratio=_corun(cells, (alpha_s, beta_s), slots),
        residual_ratio=float(np.sqrt(np.mean([(one.mean_s / one.fitted_s - 1) ** 2 for one in fitted]))),
        sizes=fitted,
        host=_host(alone),
        h2d_s=_copy_s(alone, "h2d_s"),
        d2h_s=_copy_s(alone, "d2h_s"),
    )


def size_means(calls: Calls) -> list[tuple[float, float, int]]:
    """Size, mean seconds and count of each size that was seen often enough."""
    found = []
    for size in np.unique(calls.sizes):
        of_size = calls.compute_s[calls.sizes == size]
        if len(of_size) >= _LEAST_CALLS:
            found.append((float(size), float(of_size.mean()), len(of_size)))
    return found


def fit_line(means: Sequence[tuple[float, float, int]]) -> tuple[float, float]:
    """Intercept and slope, neither below 0, of the line with the least relative errors at the sizes' means.

    Each size weighs by the root of its count, since the mean of more calls is better known.
    """
    sizes, seconds, counts = np.array(means).T
    return solve_line(sizes, seconds, np.sqrt(counts))


def _corun(cells: Sequence[Observed], line: tuple[float, float], slots: int) -> Interval:
    """Growth of a call for each other one beside it; 0 where no cell has several workers."""
    growths = []
    for cell in cells:
        others = min(cell.workers, slots) - 1
        if others < 1:
            continue
        for number in np.unique(cell.calls.rounds):
            calls = _of_round(cell.calls, number)
            expected_s = float((line[0] + line[1] * calls.sizes).sum())
            growths.append((float(calls.compute_s.sum()) / expected_s - 1) / others)
    if not growths:
        return Interval(value=0.0, low=None, high=None)
    found = mean_interval(np.array(growths))
    return Interval(value=max(0.0, found.value or 0.0), low=found.low, high=found.high)


def _copy_s(alone: Sequence[Observed], name: str) -> float:
    """A request's share of a copy, where the fixed part of a copy counts least."""
    calls = max(alone, key=lambda cell: cell.mean_size).calls
    return float(getattr(calls, name).sum() / calls.sizes.sum())


def _host(alone: Sequence[Observed]) -> Host:
    """Host work is so much a call and so much a request; waits are those of the cell with the smallest batches."""
    sizes = np.array([cell.mean_size for cell in alone])
    before, after, server = (
        _per_call_and_request(sizes, [getattr(cell, name) or 0.0 for cell in alone])
        for name in ("preprocess_cpu_s", "postprocess_cpu_s", "server_cpu_s")
    )
    has_copies = alone[0].has_copies  # then the call's own thread only launches; else it computes
    around_s = [float(np.median(cell.calls.around_s)) for cell in alone]
    cpu_s = [float(np.median(cell.calls.cpu_s)) for cell in alone] if has_copies else around_s
    call = _per_call_and_request(sizes, list(np.array(cpu_s) / sizes))
    smallest = int(np.argmin(sizes))
    return Host(
        preprocess_serial_s=before.request_s + call.request_s,
        preprocess_parallel_s=alone[smallest].preprocess_wait_s,
        call_serial_s=call.call_s + before.call_s + after.call_s + server.call_s,
        call_parallel_s=max(0.0, around_s[smallest] - cpu_s[smallest]),
        postprocess_serial_s=after.request_s,
        postprocess_parallel_s=alone[smallest].postprocess_wait_s,
        server_serial_s=server.request_s,
        pause_s=alone[smallest].pause_s,
    )


class _Shares(NamedTuple):
    call_s: float
    request_s: float


def _per_call_and_request(sizes: Floats, seconds: Sequence[float]) -> _Shares:
    """What costs so much a request at these mean batch sizes, as a part for each call and a part for each request."""
    from scipy.optimize import nnls

    design = np.column_stack([1 / sizes, np.ones_like(sizes)])
    (call_s, request_s), _ = nnls(design, np.array(seconds))
    return _Shares(float(call_s), float(request_s))


def _joined(parts: Iterable[Calls]) -> Calls:
    found = list(parts)
    names = [item.name for item in dataclasses.fields(Calls)]
    return Calls(**{name: np.concatenate([getattr(part, name) for part in found]) for name in names})


def _of_round(calls: Calls, number: float) -> Calls:
    names = [item.name for item in dataclasses.fields(Calls)]
    return Calls(**{name: getattr(calls, name)[calls.rounds == number] for name in names})


def _around(value: float, of_rounds: Floats) -> Interval:
    """The pooled value with the half width that the rounds give."""
    spread = mean_interval(of_rounds)
    if spread.value is None or spread.low is None or spread.high is None:
        return Interval(value=value, low=None, high=None)
    half = (spread.high - spread.low) / 2
    return Interval(value=value, low=max(0.0, value - half), high=value + half)
