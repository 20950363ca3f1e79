"""How did each payload set of a mix fare? Quantiles of its own requests, for those of a mix describe none of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from perfkit.measuring.analysis.summary import summarise

if TYPE_CHECKING:
    from perfkit.measuring.analysis.rundata import RunData

GRADES = ("sound", "short", "unsteady", "void")
_KEPT = ("requests", "errors", "error_ratio", "latency_s", "grade", "reasons")


def set_figures(run: RunData, whole: Mapping[str, Any]) -> dict[str, Any]:
    """`payload_sets`: for each set its name, its share asked for and had, and its figures; {} for a single file.

    `whole` is the point of the run; when its instruments failed no set has figures either.
    """
    reports = run.generator_reports
    sets = reports[0].get("payloads", {}).get("sets", ()) if reports else ()
    if len(sets) < 2:
        return {}
    total = sum(one["weight"] for one in sets)
    return {"payload_sets": [_figures(run, whole, one) | {"asked_ratio": one["weight"] / total} for one in sets]}


def _figures(run: RunData, whole: Mapping[str, Any], one: Mapping[str, Any]) -> dict[str, Any]:
    payloads = run.requests["payload"].to_numpy(dtype="float64", na_value=-1.0)
    inside = (payloads >= one["first"]) & (payloads < one["first"] + one["count"])
    named = {"name": one["name"], "had_ratio": float(inside.sum()) / max(1, int((payloads >= 0).sum()))}
    if not whole["valid"]:
        return named | {"grade": "void", "reasons": list(whole["reasons"])}
    # Of a closed loop's users none belongs to one set, so the set has no law of its own to be held against.
    alone = dataclasses.replace(
        run,
        requests=run.requests[inside],
        batches=run.batches.iloc[:0],
        gauges=(),
        counters=(),
        generator_reports=(),
        load=dict(run.load) | {"loop": "open", "arrivals": "of a mix"},
    )
    point = summarise(alone).to_json()
    return named | _no_better({name: point[name] for name in _KEPT}, whole)


def _no_better(own: dict[str, Any], whole: Mapping[str, Any]) -> dict[str, Any]:
    """A part of a run is known no better than the run: it has no P99 where that has none, and no higher grade."""
    if whole["latency_s"]["p99"]["value"] is None:
        tail = own["latency_s"]["p99"] | {"value": None}
        own = own | {"latency_s": own["latency_s"] | {"p99": tail}}
    if GRADES.index(whole["grade"]) > GRADES.index(own["grade"]):
        return own | {"grade": whole["grade"], "reasons": [*whole["reasons"], *own["reasons"]]}
    return own
