"""What did a comparison find? The verdict with its figures, what was left out, and what may have disturbed it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from perfkit.measuring.analysis.compare.replicate import Replicate
from perfkit.measuring.analysis.compare.verdict import Findings, Rule
from perfkit.measuring.analysis.compare.wording import claim_of, describe
from perfkit.units import format_interval, format_number, format_percent

_STANDING = {"void": "is void and left out", "unsteady": "counts, though unsteady"}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """B against A: what was found, and the runs behind it.

    `notes` says what disturbs the comparison: runs that were not interleaved, other machines, other versions.
    """

    labels: tuple[str, str]
    simulated: bool
    findings: Findings
    rule: Rule
    runs_a: Sequence[Replicate]
    runs_b: Sequence[Replicate]
    notes: tuple[str, ...]
    folders: tuple[Path, ...]

    def __repr__(self) -> str:
        return "\n".join([self.claim, *self.lines])

    @property
    def verdict(self) -> str:
        """faster, slower, mixed, no difference, inconclusive or void: B against A."""
        return self.findings.verdict

    @property
    def title(self) -> str:
        """Who against whom, and the verdict: for the head of a picture."""
        return f"{self.labels[1]} against {self.labels[0]}: {self.verdict}"

    @property
    def claim(self) -> str:
        """The verdict in one sentence."""
        return claim_of(self.findings, self.labels, self.simulated)

    @property
    def lines(self) -> tuple[str, ...]:
        """One line a metric, then what was left out, what disturbed, and what was noted."""
        return (*describe(self.findings, self.rule), *self.left_out, *self.noise, *self.notes)

    @property
    def left_out(self) -> tuple[str, ...]:
        """Every run that counts for nothing or not fully, by name, with the reason."""
        sides = zip(("A", "B"), (self.runs_a, self.runs_b), strict=True)
        return tuple(
            f"{side} run {place + 1} ({one.run_id}) {_STANDING[one.grade]}: {', '.join(one.reasons[:1]) or 'no reason'}"
            for side, runs in sides
            for place, one in enumerate(runs)
            if one.grade in _STANDING
        )

    @property
    def noise(self) -> tuple[str, ...]:
        """What else the machine did meanwhile."""
        return noise_lines([*self.runs_a, *self.runs_b])

    def to_json(self) -> dict[str, Any]:
        """The document of `perfkit compare --json`."""
        return {
            "schema": 1,
            "simulated": self.simulated,
            "verdict": self.verdict,
            "claim": self.claim,
            "a": self.labels[0],
            "b": self.labels[1],
            "interleaved": self.findings.is_paired,
            "margin_ratio": self.rule.margin_ratio,
            "counted": {"a": self.findings.counted[0], "b": self.findings.counted[1]},
            "error_ratio": {"a": self.findings.errors_ratio[0], "b": self.findings.errors_ratio[1]},
            "metrics": [metric.to_json() for metric in self.findings.metrics],
            "left_out": list(self.left_out),
            "noise": list(self.noise),
            "notes": list(self.notes),
            "runs": {"a": [one.to_json() for one in self.runs_a], "b": [one.to_json() for one in self.runs_b]},
            "folders": [str(folder) for folder in self.folders],
        }


def noise_lines(runs: Sequence[Replicate]) -> tuple[str, ...]:
    """The worst of each disturbance over all runs, where it was recorded: shown, and nothing is left out for it."""
    worst = (
        ("stolen by other machines, of the cores' time in a run", "stolen_ratio", format_percent),
        ("some task waited for a core, of a run's time", "pressure_ratio", format_percent),
        ("throttled by a quota, of a run's time", "throttled_ratio", format_percent),
        ("cores that neighbours used", "neighbour_cores", format_number),
    )
    lines = []
    for what, name, write in worst:
        if values := [value for one in runs if (value := getattr(one, name)) is not None]:
            lines.append(f"{what}: at most {write(max(values))}")
    if loads := [one.load_average for one in runs if one.load_average is not None]:
        ends = format_interval(format_number(min(loads)), format_number(max(loads)))
        lines.append(f"load average of the machine over the runs, their own work included: {ends}")
    return tuple(lines)
