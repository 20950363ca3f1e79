"""How far can single requests of a foreign run be trusted, by the rules that perfkit's own runs are graded by?

Only what the file allows; what it does not tell is named among the entries, so that nobody takes silence for a
pass. A result without single requests gets no certificate at all.
"""

from __future__ import annotations

from collections.abc import Mapping

from perfkit.measuring.analysis.blocks import Floats
from perfkit.measuring.analysis.certificate import Certificate, Entry, certify_latencies, certify_quantile
from perfkit.measuring.analysis.certificate.entry import held, not_applicable, recorded
from perfkit.measuring.analysis.latency import Quantile
from perfkit.measuring.analysis.stability import compare_levels
from perfkit.measuring.analysis.steady import judge_latencies
from perfkit.measuring.analysis.warmup import mser_cut
from perfkit.measuring.importers.imported import Basis, percent_name

_GRADED = (0.5, 0.95, 0.99)
_CLIENT_ONLY = "the file holds the client's side only"
_UNTOLD = {
    "server conservation": _CLIENT_ONLY,
    "stage sum": _CLIENT_ONLY,
    "Little": f"{_CLIENT_ONLY}; perfkit audit holds rate and latency against the clients",
    "generator lateness": "the file does not say how the generator itself fared",
}
_OMISSION = {
    "scheduled": "latency counts from the scheduled send",
    "sent": "latency counts from the actual send: what a client held up by a slow reply waited is missing",
    "unknown": "the file does not say whether latency counts from the scheduled or the actual send",
    "none": "the file holds no latencies",
}
_ANSWERS_ORIGIN = "by definition: without an answer nothing was measured"


def certify(latency_s: Floats, quantiles: Mapping[float, Quantile]) -> Certificate:
    """The certificate of answered requests in the order of their start."""
    if not len(latency_s):
        return Certificate(entries=(_answers(0),))
    sizes = [len(latency_s)]
    found = judge_latencies(latency_s, sizes, mser_cut(latency_s).ended, compare_levels(latency_s, sizes))
    enough = (certify_quantile(percent_name(p), quantiles[p]) for p in _GRADED)
    return Certificate(entries=(_answers(len(latency_s)), *certify_latencies(found, 0.0), *enough))


def unseen(basis: Basis) -> tuple[Entry, ...]:
    """What perfkit's own runs are held against and a file of requests cannot be, and what its latencies miss."""
    missing = (not_applicable(name, "needs more than the file holds", "void", why) for name, why in _UNTOLD.items())
    return (*missing, recorded("coordinated omission", {}, "how the format counts", _OMISSION[basis]))


def _answers(count: int) -> Entry:
    status, costs, reason = held("void", [] if count else ["no request was answered"])
    return Entry(
        name="answers",
        status=status,
        figures={"replies": count},
        threshold=1,
        origin=_ANSWERS_ORIGIN,
        costs=costs,
        reason=reason,
    )
