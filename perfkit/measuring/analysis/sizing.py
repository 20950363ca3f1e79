"""What do the sizing formulas say of a measured service, and what did the measurement say?

Each formula is fed with what the run measured, and its answer stands beside the figure of the same run that
would confirm it. Where a formula's own figure was not recorded the row says so instead of a number.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from perfkit.measuring.analysis import sizing_formulas as formulas
from perfkit.measuring.analysis.sizing_formulas import Formula

OUTSIDE_SERVER = ("send", "accept", "receive")
QUEUE_WAITS = ("preprocess_wait", "queue_wait", "batch_wait")
COMPUTING = ("preprocess", "collate", "compute", "postprocess")
HELD_WAITING = ("copy_wait", "h2d", "compute_wait", "d2h", "wake_lag")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Sizing:
    """A formula's answer beside the measurement. None is "not known"; `measured_as` says what was measured.

    `inputs` are what the formula was fed with, the unit in each name.
    """

    formula: Formula
    inputs: Mapping[str, float]
    value: float | None
    measured: float | None = None
    measured_as: str = ""

    def to_json(self) -> dict[str, Any]:
        """As plain values; the ratio is that of the formula to the measurement."""
        ratio = self.value / self.measured if self.value is not None and self.measured else None
        return {
            **dataclasses.asdict(self.formula),
            "inputs": dict(self.inputs),
            "value": self.value,
            "measured": self.measured,
            "measured_as": self.measured_as,
            "of_measured_ratio": ratio,
        }


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What is asked of a service: a rate, the time of one request, and perhaps an acceptable wait and cores."""

    rate_rps: float
    time_s: float
    wait_s: float | None = None
    cores: int | None = None


def size_demand(demand: Demand) -> list[Sizing]:
    """The formulas alone, for a service that is yet to be built or measured."""
    flow = {"rate_rps": demand.rate_rps, "time_s": demand.time_s}
    found = [
        Sizing(formula=formula, inputs=flow, value=float(size(demand.rate_rps, demand.time_s)))
        for formula, size in (
            (formulas.IN_FLIGHT, formulas.in_flight),
            (formulas.CLIENT_THREADS, formulas.client_threads),
            (formulas.POOL_SIZE, formulas.pool_size),
        )
    ]
    if demand.wait_s is not None:
        depth = float(formulas.queue_depth(demand.rate_rps, demand.wait_s))
        inputs = {"rate_rps": demand.rate_rps, "wait_s": demand.wait_s}
        found.append(Sizing(formula=formulas.QUEUE_DEPTH, inputs=inputs, value=depth))
    return found + ([] if demand.cores is None else _by_cores(demand.cores, None))


def size_point(point: Mapping[str, Any], cores: int) -> list[Sizing]:
    """Every formula beside what a point (as `--json` prints it) says of it; `cores` are those of its machine."""
    return [_in_flight(point), _users(point), _rate(point), _pool(point), _queue(point), *_threads(point, cores)]


def _sum(point: Mapping[str, Any], names: tuple[str, ...]) -> float | None:
    known = [value for name in names if (value := point["stages_s"].get(name)) is not None]
    return sum(known) if known else None


def _time(point: Mapping[str, Any], without: tuple[str, ...] = ()) -> float | None:
    """Mean time of a request over its stages; None where the service kept no ledger."""
    inside = tuple(name for name in point["stages_s"] if name not in OUTSIDE_SERVER)
    if _sum(point, inside) is None:
        return None
    return _sum(point, tuple(name for name in point["stages_s"] if name not in without))


def _flow(point: Mapping[str, Any], time_s: float | None) -> dict[str, float] | None:
    """What X W needs; None when either is not known."""
    rate_rps = point["throughput_rps"]["value"]
    return None if rate_rps is None or time_s is None else {"rate_rps": float(rate_rps), "time_s": time_s}


def _of_flow(formula: Formula, flow: dict[str, float] | None, measured: float | None, what: str) -> Sizing:
    sizes = {
        "in flight": formulas.in_flight,
        "client threads": formulas.client_threads,
        "pool size": formulas.pool_size,
    }
    value = None if flow is None else float(sizes[formula.name](flow["rate_rps"], flow["time_s"]))
    return Sizing(formula=formula, inputs=flow or {}, value=value, measured=measured, measured_as=what)


def _in_flight(point: Mapping[str, Any]) -> Sizing:
    flow = _flow(point, _time(point, OUTSIDE_SERVER))
    return _of_flow(formulas.IN_FLIGHT, flow, point["in_flight_mean"], "the server's own gauge")


def _users(point: Mapping[str, Any]) -> Sizing:
    load = point["load"]
    users = float(load["concurrency"]) if load["loop"] == "closed" else None
    return _of_flow(formulas.CLIENT_THREADS, _flow(point, _time(point)), users, "users that gave this rate")


def _rate(point: Mapping[str, Any]) -> Sizing:
    load, time_s = point["load"], _time(point)
    value, inputs = None, {}
    if load["loop"] == "closed" and time_s:
        inputs = {"users": float(load["concurrency"]), "time_s": time_s, "think_s": float(load["think_time_s"])}
        value = formulas.user_rate(inputs["users"], inputs["time_s"], inputs["think_s"])
    rate_rps = point["throughput_rps"]["value"]
    return Sizing(
        formula=formulas.USER_RATE, inputs=inputs, value=value, measured=rate_rps, measured_as="throughput of the run"
    )


def _pool(point: Mapping[str, Any]) -> Sizing:
    """A worker holds a request from its collation until it woke after the device."""
    workers, busy = point["settings"].get("workers"), point.get("workers_busy_ratio")
    measured = None if workers is None or busy is None else workers * busy
    flow = _flow(point, _sum(point, ("collate", "compute", *HELD_WAITING)))
    return _of_flow(formulas.POOL_SIZE, flow, measured, f"workers busy on average, of {workers or 'an unknown number'}")


def _queue(point: Mapping[str, Any]) -> Sizing:
    flow = _flow(point, _sum(point, QUEUE_WAITS))
    inputs = {} if flow is None else {"rate_rps": flow["rate_rps"], "wait_s": flow["time_s"]}
    value = None if flow is None else float(formulas.queue_depth(flow["rate_rps"], flow["time_s"]))
    return Sizing(
        formula=formulas.QUEUE_DEPTH,
        inputs=inputs,
        value=value,
        measured=point["queue_depth_mean"],
        measured_as="mean number that waited",
    )


def _threads(point: Mapping[str, Any], cores: int) -> list[Sizing]:
    workers = point["settings"].get("workers")
    found = _by_cores(cores, None if workers is None else float(workers))
    compute_s, wait_s = _sum(point, COMPUTING), _sum(point, HELD_WAITING) or 0.0
    value, inputs = None, {"cores": float(cores)}
    if compute_s:
        inputs |= {"wait_s": wait_s, "compute_s": compute_s}
        value = formulas.blocking_threads(cores, wait_s, compute_s)
    row = Sizing(formula=formulas.BLOCKING_THREADS, inputs=inputs, value=value)
    return [*found, dataclasses.replace(row, measured=found[0].measured, measured_as=found[0].measured_as)]


def _by_cores(cores: int, workers: float | None) -> list[Sizing]:
    """Rules that know nothing of the service but its cores, beside the workers of the run."""
    what = "" if workers is None else "workers of this point"
    rules = (
        (formulas.COMPUTE_THREADS, formulas.compute_threads(cores)),
        (formulas.DOUBLED_THREADS, formulas.doubled_threads(cores)),
        (formulas.IO_THREADS, formulas.io_threads(cores)),
        (formulas.POOL_CEILING, formulas.pool_ceiling(cores)[1]),
    )
    return [
        Sizing(formula=formula, inputs={"cores": float(cores)}, value=float(value), measured=workers, measured_as=what)
        for formula, value in rules
    ]
