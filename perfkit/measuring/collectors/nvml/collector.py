"""How is the GPU recorded beside a run? By a sampler process of its own, and without a GPU by a reason."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from perfkit.errors import CollectorUnavailable
from perfkit.measuring.collectors.child import (
    DEFAULT_NICENESS,
    DEFAULT_RATE_HZ,
    describe_cost,
    describe_pace,
    start_child,
    stop_child,
)
from perfkit.measuring.collectors.collector import Recording, SeriesRow, Target
from perfkit.measuring.collectors.nvml.library import missing_library
from perfkit.measuring.collectors.nvml.process import Spec
from perfkit.units import format_duration

_MODULE = "perfkit.measuring.collectors.nvml.process"


class GpuSampler:
    """Collector of what NVML tells of the GPUs. Used by one thread.

    Where the target says on which GPU it computes only that one is recorded, else every GPU.
    """

    name = "gpu"

    def __init__(self, rate_hz: float = DEFAULT_RATE_HZ, niceness: int = DEFAULT_NICENESS) -> None:
        self._rate_hz = rate_hz
        self._niceness = niceness
        self._child: subprocess.Popen[bytes] | None = None
        self._target: Target | None = None
        self._notes: list[str] = []

    def start(self, target: Target) -> None:
        """Returns once the first look is on disk; raises CollectorUnavailable that says why there is no GPU."""
        reason = missing_library(dict(os.environ))
        if reason is not None:
            raise CollectorUnavailable(f"not recorded: {reason}")
        target.folder.mkdir(parents=True, exist_ok=True)
        spec_file = target.folder / "gpu.spec.json"
        spec_file.write_text(self._spec(target).to_json(), "utf-8")
        self._target, self._child = target, start_child(_MODULE, spec_file)
        self._notes = describe_pace(self._child, self._rate_hz, self._niceness)

    def stop(self) -> Recording:
        """The rows of everything that was told, and as facts what was not told and why."""
        if self._child is None or self._target is None:
            raise RuntimeError("stop() without start()")
        path = _series_file(self._target)
        rows, missing, _ = stop_child(self._child, path, self._target.pid)
        facts = _read_facts(_facts_file(self._target))
        cost = (*describe_cost(rows, "gpu_sampler"), *_describe_jitter(rows))
        notes = (*self._notes, *cost, *(note for gpu in facts.get("gpus", ()) for note in describe(gpu)))
        return Recording(name=self.name, series=rows, files=(path,), notes=notes, missing=missing, facts=facts)

    def _spec(self, target: Target) -> Spec:
        return Spec(
            pid=target.pid,
            series=str(_series_file(target)),
            facts=str(_facts_file(target)),
            rate_hz=self._rate_hz,
            niceness=self._niceness,
            uuid=target.gpu_uuid,
        )


def _series_file(target: Target) -> Path:
    return target.folder / "gpu.series"


def _facts_file(target: Target) -> Path:
    return target.folder / "gpu.facts.json"


def _read_facts(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text("utf-8")))
    except (OSError, ValueError):  # the sampler was killed before its first look ended
        return {}


def _describe_jitter(rows: Sequence[SeriesRow]) -> list[str]:
    late_s = [row.value for row in rows if row.source == "gpu_sampler" and row.name == "lateness"]
    if not late_s:
        return []
    typical, worst = format_duration(statistics.median(late_s)), format_duration(max(late_s))
    return [f"looks came {typical} behind their instant (median of {len(late_s)}), {worst} at worst"]


def describe(gpu: Mapping[str, Any]) -> list[str]:
    """One line a GPU's loss, one a reason for which fields are not available, one a field that failed at times."""
    label = f"{gpu['name']} ({gpu['uuid']})"
    by_reason: dict[str, list[str]] = {}
    for name, reason in gpu["missing"].items():
        by_reason.setdefault(reason, []).append(name)
    lost = [f"{label}: {gpu['lost']}; rows end there"] if gpu["lost"] else []
    absent = [f"{label}: {', '.join(names)} not available: {reason}" for reason, names in by_reason.items()]
    return [*lost, *absent, *(f"{label}: {name} {_shaky(counts)}" for name, counts in gpu["failed"].items())]


def _shaky(counts: Mapping[str, Any]) -> str:
    return f"failed {counts['failures']} times beside {counts['readings']} readings: {counts['reason']}"
