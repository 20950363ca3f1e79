"""Which setting gives the most throughput inside the latency budget, and why that one?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from perfkit import units
from perfkit.measuring.analysis.point import Point
from perfkit.measuring.analysis.usable import Document, interval_of, rate_of, usable_points

Basis = Literal["p99", "p95"]
_PRICES = ("takes more workers", "takes larger batches", "takes more users", "answers later")
MOST_TIE_LOSS_RATIO = 0.10  # judgement: less than this does not matter, as for a step of the latency


def choose_best(points: Iterable[Point | Document], p99_s: float | None = None) -> dict[str, Any] | None:
    """The setting with the most throughput whose certified P99 is within `p99_s` seconds; None when there is none.

    Void and unsteady points are passed over. The upper end of the interval must keep the budget. Where P99
    is not known at a point that could win, P95 decides for all, and the reason says so. A throughput that
    cannot be told apart goes to the cheaper setting.
    """
    usable = usable_points(points)
    basis, why = _basis(usable, p99_s)
    fitting = [document for document in usable if _fits(document, basis, p99_s)]
    if not fitting:
        return None
    top = max(fitting, key=rate_of)
    chosen = min(
        (document for document in fitting if _ties(document, top)), key=lambda document: _cost(document, basis)
    )
    sentences = [_claim(chosen, basis, p99_s), why, _tie(chosen, top, basis)]
    reason = " ".join(sentence for sentence in sentences if sentence)
    return {
        "settings": dict(chosen["settings"]),
        "varied": dict(chosen["varied"]),
        "reason": reason,
        "basis": basis,
    }


def _basis(usable: Sequence[Document], budget_s: float | None) -> tuple[Basis, str]:
    """P99 unless it is unknown at a point that could win by it."""
    certified = [document for document in usable if _fits(document, "p99", budget_s) and _is_known(document, "p99")]
    best_rate = max((rate_of(document) for document in certified), default=0.0)
    unknown = [
        document
        for document in usable
        if not _is_known(document, "p99") and not _is_too_slow(document, budget_s) and _could_reach(document, best_rate)
    ]
    if not unknown:
        return "p99", ""
    needs = [document["latency_s"]["p99"]["needs_s"] for document in unknown]
    longest = max((seconds for seconds in needs if seconds is not None), default=None)
    text = f"P99 is not known at {len(unknown)} of {len(usable)} points"
    text += f" (it needs up to {units.format_duration(longest)} a point), so P95 stands in for it"
    lacking = sum(not _is_known(document, "p95") for document in usable)
    return "p95", f"{text}, itself without a value at {lacking}." if lacking else f"{text}."


def _is_known(document: Document, basis: Basis) -> bool:
    return document["latency_s"][basis]["value"] is not None


def _is_too_slow(document: Document, budget_s: float | None) -> bool:
    """Whether even the lower ends exceed the budget, so that the missing value cannot matter."""
    lows = [document["latency_s"][basis]["low"] for basis in ("p95", "p99")]
    return budget_s is not None and any(low is not None and low > budget_s for low in lows)


def _could_reach(document: Document, rate_rps: float) -> bool:
    high = document["throughput_rps"]["high"]
    return high is None or float(high) >= rate_rps


def _fits(document: Document, basis: Basis, budget_s: float | None) -> bool:
    high = document["latency_s"][basis]["high"]
    return budget_s is None or (high is not None and float(high) <= budget_s)


def _ties(document: Document, top: Document) -> bool:
    near = rate_of(document) >= (1 - MOST_TIE_LOSS_RATIO) * rate_of(top)
    return near and interval_of(document["throughput_rps"]).overlaps(interval_of(top["throughput_rps"]))


def _cost(document: Document, basis: Basis) -> tuple[float, ...]:
    """Fewer workers, then smaller batches, then fewer users, then lower latency."""
    settings: Mapping[str, Any] = document["settings"]
    batch: Mapping[str, Any] = settings.get("batch") or {}
    latency = document["latency_s"][basis]["value"] or document["latency_s"]["p50"]["value"] or float("inf")
    users = document["load"].get("concurrency", 0)
    return float(settings.get("workers", 0)), float(batch.get("max_size", 0)), float(users), float(latency)


def _claim(document: Document, basis: Basis, budget_s: float | None) -> str:
    latency = document["latency_s"][basis]
    text = f"{_name(document)}: {_rate(document)} in {_loop(document['load'])}"
    known = latency["high"] is not None
    text += (
        f", {basis.upper()} at most {units.format_duration(latency['high'])}" if known else f", {basis.upper()} unknown"
    )
    return text + (f" (budget {units.format_duration(budget_s)})." if budget_s is not None else ".")


def _tie(chosen: Document, top: Document, basis: Basis) -> str:
    if chosen is top:
        return ""
    costs = zip(_PRICES, _cost(chosen, basis), _cost(top, basis), strict=True)
    price = next((name for name, ours, theirs in costs if ours != theirs), "costs the same")
    return f"{_name(top)} gives {_rate(top)}, which is not more within the noise, and {price}."


def _name(document: Document) -> str:
    named = [f"{name} {value}" for name, value in document["varied"].items()]
    return ", ".join(named) or "the only setting"


def _rate(document: Document) -> str:
    rate = document["throughput_rps"]
    low, high = units.format_rate(rate["low"]), units.format_rate(rate["high"])
    return f"{units.format_rate(rate['value'])} ({units.format_interval(low, high)})"


def _loop(load: Mapping[str, Any]) -> str:
    if load["loop"] == "closed":
        return f"a closed loop of {load['concurrency']} users"
    return f"an open loop at {units.format_rate(load['rate_rps'])}"
