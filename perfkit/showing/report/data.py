"""What does a report show? Everything that the page needs, already measured and judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportData:
    """One report. Points are the documents of `perfkit scan --json`.

    Each of `scans` holds `title`, `varied` (the setting's name), `series` (label -> points; "" for the only one),
    `knee` (one, or one a series by label, or None) and `best` (or None), and may hold `fits` (label -> what
    `Scan.fits` holds). `comparison` maps a label, such as
    "default", to its point. `environment` may nest. `gpu` holds the columns of plots.gpu.gpu_table; `remarks` are
    what the recorders said of themselves, such as their own cost and what they could not record.
    """

    title: str
    simulated: bool
    created: str
    recommendation: str
    scans: Sequence[Mapping[str, Any]]
    flame: Mapping[str, Any] | None = None
    flame_missing_reason: str = ""
    comparison: Mapping[str, Mapping[str, Any]] | None = None
    comparison_verdict: str = ""
    environment: Mapping[str, Any] = field(default_factory=dict)
    gpu: Mapping[str, Sequence[Any]] | None = None
    remarks: Sequence[str] = ()
