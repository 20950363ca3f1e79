"""How is a result said in a sentence? The recommendation, what padding costs, and whether the advice held."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from perfkit.measuring.analysis.scaling.wording import scaling_sentences
from perfkit.measuring.analysis.usable import interval_of, rate_of
from perfkit.units import format_interval, format_number, format_percent, format_rate

Points = Sequence[Mapping[str, Any]]
Say = Callable[[Mapping[str, Any]], list[str]]

_NOTABLE_PADDING = 0.2  # above this share of computed tokens, padding is worth a sentence


def recommendation(best: Mapping[str, Any] | None) -> str:
    """What to set, and why."""
    if best is None:
        return "No point is fit to be recommended: each is void, unsteady or over its budget. The table says why."
    return f"Recommended: {best['reason']}"


def limit_texts(fits: Mapping[str, Mapping[str, Any]], say: Say = scaling_sentences) -> list[str]:
    """What limits each curve, by its label ("" for the only one), in sentences of one kind."""
    return [
        f"{label}: {sentence}" if label else sentence for label, scaling in fits.items() for sentence in say(scaling)
    ]


def padding_remark(curves: Mapping[str, Points]) -> str:
    """What batching gains and padding wastes, for each set of payloads; empty when nothing is notable."""
    return " ".join(filter(None, (_padding_of(label, points) for label, points in curves.items())))


def _padding_of(label: str, points: Points) -> str:
    known = [point for point in points if (point["throughput_rps"] or {}).get("value") is not None]
    if len(known) < 2 or known[0] is not points[0]:  # without the smallest batch there is nothing to gain against
        return ""
    small, large = known[0], known[-1]
    wasted = large.get("padding_ratio")
    if wasted is None or wasted < _NOTABLE_PADDING:
        return ""
    before, after = (point["varied"]["batch.max_size"] for point in (small, large))
    return (
        f"With {label}, batches of up to {after} are {format_percent(wasted)} padding; batching {_gain(small, large)}: "
        f"{format_rate(rate_of(small))} with a max batch of {before}, {format_rate(rate_of(large))} with {after}."
    )


def _gain(small: Mapping[str, Any], large: Mapping[str, Any]) -> str:
    before, after = interval_of(small["throughput_rps"]), interval_of(large["throughput_rps"])
    caveat = ", though not in a steady state" if _is_unsteady(small) or _is_unsteady(large) else ""
    if before.overlaps(after):
        return f"gains nothing that stands out of the noise{caveat}"
    return f"{'still gains' if rate_of(large) > rate_of(small) else 'loses'}{caveat}"


def comparison_verdict(compared: Mapping[str, Mapping[str, Any]]) -> str:
    """Whether recommended really beats default, by their throughput intervals of the same interleaved rounds."""
    default, chosen = (interval_of(compared[name]["throughput_rps"]) for name in ("default", "recommended"))
    if not default.value or not chosen.value:
        return "Inconclusive: one of the two has no throughput, see its grade."
    low, high = _ratio(chosen.low, default.high, 0.0), _ratio(chosen.high, default.low, math.inf)
    interval = format_interval(f"{format_number(low)} x", f"{format_number(high)} x")
    claim = f"{format_number(chosen.value / default.value)} x ({interval}) the throughput of the default"
    caveat = ", though not in a steady state" if any(map(_is_unsteady, compared.values())) else ""
    if low > 1:
        return f"Confirmed{caveat}: the recommended setting serves {claim}."
    if high < 1:
        return f"Refuted{caveat}: the recommended setting serves only {claim}."
    return f"Inconclusive: the recommended setting serves {claim}."


def _ratio(above: float | None, below: float | None, unknown: float) -> float:
    return above / below if above is not None and below else unknown


def _is_unsteady(point: Mapping[str, Any]) -> bool:
    return bool(point["grade"] == "unsteady")
