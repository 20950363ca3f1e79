"""What is a collector? Something that records beside a run, and only records.

Meaning comes later, from pure functions over the recording. A collector that cannot run raises
`CollectorUnavailable` with the remedy; one that lost something while it ran says so in `missing`.
Absent is not zero: a value that could not be read has no row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol


class SeriesRow(NamedTuple):
    """One value of one series at one instant of the host's monotonic clock. Counters stay counters."""

    time_ns: int
    source: str
    name: str
    unit: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The process to watch, the folder for what is recorded, names for its native thread ids.

    `gpu_uuid` is the one under which CUDA knows the process's GPU; None where it has none or does not say.
    """

    pid: int
    folder: Path
    thread_names: dict[int, str] | None = None
    gpu_uuid: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What one collector brought back: rows, files, remarks, and what is missing and why.

    `facts` are plain JSON values about what was recorded, for the run's manifest.
    """

    name: str
    series: list[SeriesRow]
    files: tuple[Path, ...]
    notes: tuple[str, ...]
    missing: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


class Collector(Protocol):
    """Starts beside a target, records, stops once. Used by one thread."""

    @property
    def name(self) -> str:
        """One word that names it in a run's manifest."""

    def start(self, target: Target) -> None:
        """Begin to record; raises CollectorUnavailable that says what came and what to do."""

    def stop(self) -> Recording:
        """End the recording and hand it over; never raises because the target has gone."""
