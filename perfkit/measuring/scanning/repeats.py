"""Does a service answer a repeated payload faster? Measured in turn: different, same, same, different, and so on."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from perfkit.errors import ConfigError
from perfkit.measuring.analysis.point import Point
from perfkit.measuring.analysis.repeats import MOST_RATIO, ORIGIN, RepeatRatio, judge_repeats, repeated_ratio
from perfkit.measuring.analysis.summary import summarise
from perfkit.measuring.experiment import record, run_data
from perfkit.measuring.load.loops import ClosedLoop, Load
from perfkit.measuring.load.mixes import Catalogue, read_catalogue
from perfkit.measuring.phase import Plan, find_payloads
from perfkit.measuring.service import Service

DIFFERENT, SAME = "different", "same"
ORDER = (DIFFERENT, SAME, SAME, DIFFERENT) * 3
"""A drift of the machine falls on both alike."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RepeatAudit:
    """The comparison and what it was made of. `found` is None when a part of it was void, and `reason` says why.

    `covers_entries` is the number of different payloads: a cache that holds them all answers both arms alike.
    """

    simulated: bool
    found: RepeatRatio | None
    reason: str
    rates_rps: dict[str, list[float]]
    requests: dict[str, int]
    covers_entries: int
    same_bytes: int

    def to_json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        found = dataclasses.asdict(self.found) if self.found else {"verdict": "void"}
        shares = {DIFFERENT: self.covers_entries, SAME: 1}
        return {
            "simulated": self.simulated,
            **found,
            "threshold_ratio": MOST_RATIO,
            "origin": ORIGIN,
            "reason": self.reason,
            "rates_rps": self.rates_rps,
            "requests": self.requests,
            "repeated_ratio": {arm: repeated_ratio(self.requests[arm], shares[arm]) for arm in shares},
            "covers_entries": self.covers_entries,
            "same_bytes": self.same_bytes,
        }


def audit_repeats(
    service: Service, load: Load, seconds: float, tell: Callable[[int], None] = lambda _part: None
) -> RepeatAudit:
    """Twelve short closed-loop parts that share `seconds`; `tell` is told each as it begins.

    The repeated payload is the one of median length, so that it asks for about as much work as the others do
    on average. Raises ConfigError for an open loop or payloads that are all the same.
    """
    if not isinstance(load, ClosedLoop) or load.profile != "steady":
        raise ConfigError("repeats are audited in a closed loop at one level; leave --rate and --profile out")
    path = find_payloads(service, load)
    catalogue = read_catalogue(load.mix, path)
    if len(set(catalogue.bodies)) < 2:
        raise ConfigError(f"the payloads in {path} are all the same; give different ones to hold one against")
    with tempfile.TemporaryDirectory(prefix="perfkit-repeats-") as folder:
        same = Path(folder) / "same.jsonl"
        same.write_bytes(_median_body(catalogue) + b"\n")
        arms = {DIFFERENT: (load, path), SAME: (dataclasses.replace(load, mix={}), same)}
        points = []
        for part, arm in enumerate(ORDER):
            tell(part)
            wanted, payloads = arms[arm]
            plan = Plan(load=wanted, seconds=seconds / len(ORDER), payloads=payloads, round_index=part)
            points.append(summarise(run_data(record(service, plan, []))))
    return _audit(points, catalogue)


def _median_body(catalogue: Catalogue) -> bytes:
    by_length = sorted(catalogue.bodies, key=len)
    return by_length[len(by_length) // 2]


def _audit(points: Sequence[Point], catalogue: Catalogue) -> RepeatAudit:
    rates: dict[str, list[float]] = {DIFFERENT: [], SAME: []}
    requests = dict.fromkeys(rates, 0)
    for arm, point in zip(ORDER, points, strict=True):
        rates[arm].append(point.throughput.value or 0.0)
        requests[arm] += point.requests
    void = next((point.grade.reasons[0] for point in points if not point.is_valid), "")
    usable = not void and all(rate > 0 for part in rates.values() for rate in part)
    return RepeatAudit(
        simulated=points[0].simulated,
        found=judge_repeats(rates[DIFFERENT], rates[SAME]) if usable else None,
        reason=void or ("" if usable else "a part had no reply"),
        rates_rps=rates,
        requests=requests,
        covers_entries=len(set(catalogue.bodies)),
        same_bytes=len(_median_body(catalogue)),
    )
