"""Which device is to be checked? `cuda`, or `simulated:PRESET`, which tries the script out."""

from __future__ import annotations

from perfkit.clock import REAL_CLOCK
from perfkit.errors import ConfigError
from perfkit.measuring.gpucheck.bench import Bench

_SIMULATED = "simulated:"


def open_bench(name: str) -> Bench:
    """The device under test; raises ConfigError for an unknown name, EnvironmentLacks when it is not there."""
    if name.startswith(_SIMULATED):
        from perfkit.measuring.gpucheck.simulated_bench import SimulatedBench

        return SimulatedBench(name.removeprefix(_SIMULATED))
    if name != "cuda":
        raise ConfigError(f"device is {name!r}; it takes cuda, or simulated:PRESET such as simulated:h200")
    started_ns = REAL_CLOCK.now_ns()  # importing torch and opening the context are part of a start
    from perfkit.measuring.gpucheck.cuda_bench import CudaBench

    return CudaBench(started_ns)
