"""How long does one call take for a batch of b requests, and how much throughput can batching give at most?

H(b) = t + a b: t is the fixed time of a call, a the further time for each request. A worker that always finds a full
batch of B serves X_max(B) = B / (t + a B) requests a second. Where requests never wait for a batch to fill, their mean
latency has the bound of Inoue 2021 (arXiv 1912.06322).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from perfkit import units
from perfkit.measuring.analysis.blocks import Floats, Interval
from perfkit.measuring.analysis.scaling.refusal import Refusal
from perfkit.measuring.analysis.usable import Document

LEAST_SIZES = 3  # two sizes make a line out of anything
LEAST_BATCHES = 5  # a size with fewer calls neither shapes the line nor contradicts it
MOST_REACH_RATIO = 1.5  # beyond this times the largest batch that was seen nothing is said
MOST_MISFIT_RATIO = 0.10  # judgement: a size further off the line than this, and than its noise, shows another form
Part = Literal["occupied", "compute"]
_FIXED_CREWS = ("pool", "asyncio", "processes", "serial")
_WHO_SHARES = ("max_size", "max_delay_s", "policy", "p99_budget_s", "best_size")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BatchModel:
    """H(b) with its 95 % intervals, in seconds.

    `part` says whose time it is: "occupied" for the whole time that a call keeps its worker, "compute" for the
    device's share of it. `sizes` are the batch sizes that were seen often enough, `batches` the calls in all of them.
    `workers` is how many there were, None where their number changes with the load.
    """

    part: Part
    device: str
    workers: int | None
    fixed_s: Interval
    per_request_s: Interval
    sizes: tuple[int, ...]
    batches: int
    worst_residual_ratio: float

    @property
    def reach(self) -> float:
        """The largest batch that the fit speaks of."""
        return MOST_REACH_RATIO * self.sizes[-1]

    def call_s(self, size: int) -> float | Refusal:
        """Mean seconds of a call with so many requests."""
        if not 1 <= size <= self.reach:
            return Refusal(
                reason=f"a batch of {size} lies outside 1 to {self.reach:g}, {MOST_REACH_RATIO:g} times the largest "
                "that was seen; raise batch.max_size and measure"
            )
        return _value(self.fixed_s) + _value(self.per_request_s) * size

    def max_rps(self, size: int) -> float | Refusal:
        """X_max(B): requests a second of one worker (or one device) that always finds a full batch."""
        call_s = self.call_s(size)
        return call_s if isinstance(call_s, Refusal) else size / call_s

    def mean_latency_bound_s(self, rate_rps: float) -> float | Refusal:
        """Inoue's upper bound of the mean latency for Poisson arrivals, one server, batches without limit or window."""
        fixed, slope = _value(self.fixed_s), _value(self.per_request_s)
        load = rate_rps * slope
        if load >= 1:
            return Refusal(
                reason=f"{units.format_rate(rate_rps)} is not below the {units.format_rate(1 / slope)} that batches "
                "without limit can serve; the queue has no steady state"
            )
        busy = rate_rps * fixed
        first = (slope + fixed) / (2 * (1 - load)) * (1 + 2 * busy + (1 - busy) / (1 + load))
        second = 1.5 * fixed / (1 - load) + slope * (load + 2) / (2 * (1 - load**2))
        return min(first, second)

    def to_json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return {
            "refusal": None,
            "part": self.part,
            "device": self.device,
            "workers": self.workers,
            "reach": self.reach,
            "fixed_s": self.fixed_s.to_json(),
            "per_request_s": self.per_request_s.to_json(),
            "sizes": list(self.sizes),
            "batches": self.batches,
            "worst_residual_ratio": self.worst_residual_ratio,
        }


def _value(interval: Interval) -> float:
    assert interval.value is not None  # a fit that was not refused has both
    return interval.value


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Cell:
    """The calls of one size at one point."""

    size: int
    batches: int
    mean_s: float
    sd_s: float


def fit_batch_model(points: Sequence[Document], part: Part) -> BatchModel | Refusal:
    """The line over all calls of these points, which must be of one server setting apart from its batching.

    Weighted least squares, neither parameter negative. Calls of one size scatter within a point and between points;
    the larger of the two makes Student's intervals.
    """
    refusal = _mixed(points)
    if refusal is not None:
        return refusal
    cells = [cell for cell in _cells(points, part) if cell.batches >= LEAST_BATCHES]
    sizes = sorted({cell.size for cell in cells})
    if len(sizes) < LEAST_SIZES:
        seen = ", ".join(map(str, sizes)) or "none"
        return Refusal(
            reason=f"batch sizes seen in {LEAST_BATCHES} calls or more: {seen}; a line that can be contradicted takes "
            f"{LEAST_SIZES}, so vary the load or batch.max_size"
        )
    line = _line(cells)
    if isinstance(line, Refusal):
        return line
    fixed, slope, worst_ratio = line
    settings = points[0]["settings"]
    return BatchModel(
        part=part,
        device=str(settings.get("device") or "device"),
        workers=_workers(settings),
        fixed_s=fixed,
        per_request_s=slope,
        sizes=tuple(sizes),
        batches=sum(cell.batches for cell in cells),
        worst_residual_ratio=worst_ratio,
    )


def _workers(settings: Mapping[str, Any]) -> int | None:
    """Workers at once, where that is a setting and not the load's doing."""
    is_fixed = (settings.get("concurrency") or {}).get("model", "pool") in _FIXED_CREWS
    return int(settings["workers"]) if is_fixed and settings.get("workers") else None


def _mixed(points: Sequence[Document]) -> Refusal | None:
    """Why calls of these points do not belong together."""
    server = [{**point["settings"], "batch": _shaping(point["settings"])} for point in points]
    differing = sorted(
        name for name in set().union(*server) if any(one.get(name) != server[0].get(name) for one in server)
    )
    if len({point["load"].get("payloads") for point in points}) > 1:
        differing.append("load.payloads")
    if not differing:
        return None
    return Refusal(
        reason=f"the points differ in {', '.join(differing)}, and a call's time belongs to one setting of the server "
        "and one kind of payload"
    )


def _shaping(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of the batcher that change what a call computes, and not just which requests share one."""
    return {name: value for name, value in (settings.get("batch") or {}).items() if name not in _WHO_SHARES}


def _cells(points: Iterable[Document], part: Part) -> Iterable[_Cell]:
    for point in points:
        for call in point.get("calls") or ():
            if call[f"{part}_s"]:
                spread = call[f"{part}_sd_s"] or 0.0
                yield _Cell(size=call["size"], batches=call["batches"], mean_s=call[f"{part}_s"], sd_s=spread)


def solve_line(sizes: Floats, means_s: Floats, counts: Floats) -> tuple[float, float]:
    """Fixed time of a call and time per request, neither negative, from mean call times by size.

    A mean of n calls has a variance like its square over n, because a call's scatter grows with its length.
    """
    from scipy.optimize import nnls

    (fixed_s, per_request_s), _ = nnls(_design(sizes, means_s, counts), np.sqrt(counts))
    return float(fixed_s), float(per_request_s)


def _design(sizes: Floats, means_s: Floats, counts: Floats) -> Floats:
    """The columns of H(b) = t + a b, each row divided by its standard error in units of the relative scatter."""
    weights = np.sqrt(counts) / means_s
    return np.asarray(np.column_stack([weights, sizes * weights]), dtype=np.float64)


def _line(cells: Sequence[_Cell]) -> tuple[Interval, Interval, float] | Refusal:
    """Fixed time, time per request, and the largest relative distance of a cell from the line."""
    sizes, means, counts = np.array([(cell.size, cell.mean_s, cell.batches) for cell in cells], dtype=np.float64).T
    solution = solve_line(sizes, means, counts)
    residuals = means / (solution[0] + solution[1] * sizes) - 1
    refusal = _misfit(cells, residuals)
    if refusal is not None:
        return refusal
    halves = _half_widths(cells, _design(sizes, means, counts), residuals)
    fixed, slope = (
        Interval(value=value, low=max(0.0, value - float(half)), high=value + float(half))
        for value, half in zip(solution, halves, strict=True)
    )
    return fixed, slope, float(np.abs(residuals).max())


def _half_widths(cells: Sequence[_Cell], design: Floats, residuals: Floats) -> Floats:
    """Student's half widths of both parameters."""
    from scipy.special import stdtrit

    counts = np.array([cell.batches for cell in cells], dtype=np.float64)
    within = float(np.average([(cell.sd_s / cell.mean_s) ** 2 for cell in cells], weights=counts))
    between = float(np.sum(counts * residuals**2)) / (len(cells) - 2)
    degrees = len(cells) - 2 if between > within else int(counts.sum()) - 2
    covariance = max(within, between) * np.linalg.inv(design.T @ design)
    return np.asarray(float(stdtrit(degrees, 0.975)) * np.sqrt(np.diag(covariance)), dtype=np.float64)


def _misfit(cells: Sequence[_Cell], residuals: Floats) -> Refusal | None:
    noise = np.array([4 * cell.sd_s / cell.mean_s / math.sqrt(cell.batches) for cell in cells])
    off = np.where(np.abs(residuals) > noise, np.abs(residuals), 0.0)
    worst = int(np.argmax(off))
    if off[worst] <= MOST_MISFIT_RATIO:
        return None
    side = "longer" if residuals[worst] > 0 else "shorter"
    return Refusal(
        reason=f"calls of {cells[worst].size} took {units.format_percent(float(off[worst]))} {side} than the line "
        "says, more than their noise: the time is no straight line of the batch size (padding, steps of the hardware, "
        "workers in each other's way)"
    )
