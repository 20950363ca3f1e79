"""How is a real GPU put to the test, through the same device that serves requests?

Networks run at perfkit's own levels of execution, kernels and copies inside the device's `run`. The
encoder computes in float16: as fast as bfloat16 on tensor cores, and eight times as exact.
"""

from __future__ import annotations

import copy
import os
import platform
import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from perfkit.clock import NS_PER_S, REAL_CLOCK
from perfkit.measuring.gpucheck import networks
from perfkit.measuring.gpucheck.bench import BLOCKING, GRAPH, Bench, Board, Monitors, Work
from perfkit.measuring.gpucheck.driver_meters import Meters
from perfkit.measuring.gpucheck.sanitizer import reports_of
from perfkit.measuring.gpucheck.worker import lane, together, worker
from perfkit.serving.devices.cpu import CpuDevice
from perfkit.serving.devices.cuda.device import CudaDevice
from perfkit.serving.devices.cuda.presence import CONNECTIONS_VARIABLE
from perfkit.serving.devices.device import Span, Stream
from perfkit.serving.devices.lane import Batch
from perfkit.serving.execution.eager import InferenceMode
from perfkit.serving.execution.graph import CudaGraphs
from perfkit.serving.execution.level import Level
from perfkit.serving.execution.network import Network
from perfkit.settings.cuda import CudaSettings
from sample_models.mlp import Mlp

CONNECTIONS = 32  # hardware queues: the scan goes beyond 8 workers
MATRIX = 4096  # a product of this size fills every multiprocessor for a fifth of a millisecond
_SPIN_HZ = 1.98e9  # highest SM clock of an H200; on other GPUs a spin is only shorter or longer
_MOST_PRODUCTS = 400
_CALIBRATION_CALLS = 10


class CudaBench:
    """The first GPU that CUDA shows. Safe from several threads."""

    is_simulated = False

    def __init__(
        self, started_ns: int | None = None, size: networks.EncoderSize = networks.LARGE, matrix: int = MATRIX
    ) -> None:
        started_ns = REAL_CLOCK.now_ns() if started_ns is None else started_ns
        self.device = CudaDevice(CudaSettings(connections=CONNECTIONS))
        self._where = torch.device("cuda", 0)
        self._properties: Any = torch.cuda.get_device_properties(self._where)
        self.label = str(getattr(self._properties, "name", "cuda"))
        self._meters = Meters(getattr(self._properties, "uuid", None), self.device.clock)
        self._size, self._matrix = size, matrix
        self._mlp, self._host_mlp = Mlp(), Mlp()
        self._mlp.load(self.device, seed=0)
        self._host_mlp.load(CpuDevice(), seed=0)
        self._encoder = networks.encoder(size)
        self._placed = networks.placed(self._encoder, torch.float16, self.device.place)
        self._lock = threading.Lock()  # guards _ways and _product_s
        self._ways: dict[tuple[str, tuple[int, ...]], Level] = {}
        self._product_s: float | None = None  # timed when first asked for: the first request comes to a cold device
        self.device.prepare(1)
        self._opened_s = (REAL_CLOCK.now_ns() - started_ns) / NS_PER_S

    def environment(self) -> dict[str, Any]:
        """Versions, the board, and its state now."""
        now = self._meters.board()
        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "driver": self._meters.driver,
            "python": platform.python_version(),
            "memory_bytes": self._properties.total_memory,
            "connections": os.environ.get(CONNECTIONS_VARIABLE),
            "sm_clock_hz": now.sm_clock_hz,
            "throttle_mask": now.throttle_mask,
            "product_s": self._product_s,
            "opened_s": self._opened_s,
            "missing": self._meters.missing,
        }

    def waiting(self, wait: str) -> Bench:
        """The same networks on a device whose events are made for the other way of waiting."""
        if wait == BLOCKING:
            return self
        other = copy.copy(self)
        other.device = CudaDevice(CudaSettings(connections=CONNECTIONS, wait=wait))
        return other

    def mlp(self) -> Work:
        """The MLP's predict."""
        return self._mlp.predict

    def mlp_batch(self, seed: int) -> Batch:
        """One row of 64 numbers, another for every seed."""
        return networks.mlp_row(self._host_mlp, seed)

    def mlp_expected(self, batches: Sequence[Batch]) -> Sequence[Any]:
        """What the MLP gives for each of them on the CPU."""
        return networks.mlp_outputs(self._host_mlp, batches)

    def encoder(self, level: str, sizes: tuple[int, ...] = (1,)) -> Work:
        """The encoder; the worker's first call captures its graphs, on its own stream."""
        way = self._way(level, sizes)
        opened: list[Callable[..., Tensor]] = []

        def call(ids: Tensor) -> Tensor:
            if not opened:
                opened.append(way.open())
            return opened[0](ids)

        return call

    def texts(self, size: int, seed: int) -> Batch:
        """Token ids of a batch."""
        return networks.texts(self._size, size, seed)

    def expected(self, batch: Batch) -> Any:
        """What the encoder gives for it on the CPU in float32."""
        with torch.inference_mode():
            return self._encoder(batch.inputs)

    def spin(self, seconds: float) -> Work:
        """Torch's own spinning kernel: one thread of one block."""
        cycles = self.spin_cycles(seconds)
        return lambda _: torch.cuda._sleep(cycles)  # type: ignore[no-untyped-call]

    def spin_cycles(self, seconds: float) -> int:
        """At the highest clock."""
        return round(seconds * _SPIN_HZ)

    def multiply(self, seconds: float) -> Work:
        """Products of the worker's own matrices, as many as fill the time."""
        with self._lock:
            if self._product_s is None:
                self._product_s = together(1, lambda *_: self._time_product(), name="calibration")[0]
            product_s = self._product_s
        return self._products(max(1, min(_MOST_PRODUCTS, round(seconds / product_s))))

    def copy(self, nbytes: int, is_pinned: bool) -> Callable[[Stream, Span], None]:
        """Into memory of the device that is taken once, on the stream of the first copy."""
        host = torch.ones(nbytes, dtype=torch.uint8, pin_memory=is_pinned)
        targets: list[Tensor] = []

        def move(_: Any) -> None:
            if not targets:
                targets.append(torch.empty(nbytes, dtype=torch.uint8, device=self._where))
            targets[0].copy_(host, non_blocking=is_pinned)

        return lambda stream, span: self.device.run(move, None, stream, span)

    def board(self) -> Board:
        """The driver's meters."""
        return self._meters.board()

    def monitors(self, seconds: float) -> Monitors:
        """The driver's performance monitors."""
        return self._meters.monitors(seconds)

    def oom_count(self) -> int:
        """As torch's allocator counts them."""
        return int(self.device.stats()["device_oom_count"])

    def held_bytes(self) -> int:
        """What torch's allocator has reserved."""
        return int(self.device.stats()["device_reserved_bytes"])

    def unordered_uses(self, requests: int) -> list[str]:
        """What torch's sanitizer reports."""
        batches = [self.mlp_batch(seed) for seed in range(requests)]

        def serve() -> None:
            with lane(self, "sanitizer") as mine:
                for batch in batches:
                    mine.run(self._mlp.predict, batch)

        return reports_of(serve)

    def _way(self, level: str, sizes: tuple[int, ...]) -> Level:
        with self._lock:
            key = (level, sizes)
            if key not in self._ways:
                examples = [(self.device.place(self.texts(size, seed=0).inputs),) for size in sizes]
                way: Level = CudaGraphs() if level == GRAPH else InferenceMode()
                way.prepare(self._placed, self._network(), examples)
                self._ways[key] = way
            return self._ways[key]

    def _network(self) -> Network:
        return Network(
            module=self._placed,
            arguments=lambda ids: (ids,),
            example=lambda size, _: (self.texts(size, seed=0).inputs,),
        )

    def _products(self, count: int) -> Work:
        own: list[Tensor] = []

        def call(_: Any) -> None:
            if not own:
                own.extend(torch.randn(self._matrix, self._matrix, device=self._where).half() for _made in range(3))
            for _product in range(count):
                torch.mm(own[0], own[1], out=own[2])

        return call

    def _time_product(self) -> float:
        with worker(self) as mine:
            work = self._products(_CALIBRATION_CALLS)
            mine.call(work)
            return max(mine.call(work).device_s / _CALIBRATION_CALLS, 1e-9)
