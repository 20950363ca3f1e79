"""What does the driver tell of the GPU under test? By the collector's own fields; what is absent has a reason."""

from __future__ import annotations

from typing import Any

from perfkit.clock import NS_PER_S, Clock
from perfkit.errors import CollectorUnavailable
from perfkit.measuring.collectors.nvml import fields
from perfkit.measuring.collectors.nvml.failure import Failure, attempt
from perfkit.measuring.collectors.nvml.gpm import Gpm
from perfkit.measuring.collectors.nvml.library import driver_version, find_gpu, list_gpus, open_library
from perfkit.measuring.gpucheck.bench import Board, Monitors


class Meters:
    """The driver's library over one GPU. Board readings are safe from several threads."""

    def __init__(self, uuid: Any, clock: Clock) -> None:
        self._clock = clock
        self._nvml: Any = None
        self._handle: Any = None
        self.driver: str | None = None
        self.missing = ""
        try:
            self._find("" if uuid is None else str(uuid))
        except (CollectorUnavailable, ImportError) as error:
            self.missing = str(error)

    def board(self) -> Board:
        """The meters now."""
        if self._handle is None:
            return Board(missing=self.missing)
        found: dict[str, float] = {}
        reasons: list[str] = []
        for way in (fields.utilisation, fields.sm_clock, fields.throttle):
            data = attempt(lambda way=way: way(self._nvml, self._handle))  # type: ignore[misc]
            if isinstance(data, Failure):
                reasons.append(data.reason)
            else:
                found |= {datum.name: datum.value for datum in data}
        throttle = found.get("throttle")
        return Board(
            gpu_util_ratio=found.get("gpu_util"),
            sm_clock_hz=found.get("sm_clock"),
            throttle_mask=None if throttle is None else int(throttle),
            missing="; ".join(reasons),
        )

    def monitors(self, seconds: float) -> Monitors:
        """The performance monitors over the next so many seconds."""
        if self._handle is None:
            return Monitors(missing=self.missing)
        gpm = Gpm(self._clock)
        try:
            return self._between(gpm, seconds)
        finally:
            attempt(lambda: gpm.close(self._nvml))

    def _between(self, gpm: Gpm, seconds: float) -> Monitors:
        first = attempt(lambda: gpm(self._nvml, self._handle))
        self._clock.sleep_until(self._clock.now_ns() + round(seconds * NS_PER_S))
        data = first if isinstance(first, Failure) else attempt(lambda: gpm(self._nvml, self._handle))
        if isinstance(data, Failure):
            return Monitors(missing=data.reason)
        found = {datum.name: datum.value for datum in data}
        return Monitors(
            sm_active_ratio=found.get("sm_active"),
            sm_occupancy_ratio=found.get("sm_occupancy"),
            missing="; ".join(f"{name}: {failure.reason}" for name, failure in gpm.failures.items()),
        )

    def _find(self, uuid: str) -> None:
        self._nvml = open_library()
        self.driver = driver_version(self._nvml)
        gpus = list_gpus(self._nvml)
        gpu = find_gpu(gpus, uuid) if uuid or len(gpus) > 1 else gpus[0]
        if gpu is None:
            raise CollectorUnavailable(f"the driver shows no GPU with CUDA's UUID {uuid or '(not told)'}")
        self._handle = gpu.handle
