"""How does the simulated device stand in for a GPU, so that the script can be tried out where there is none?

Outputs are really computed, by networks on the CPU; times are the preset's, on its timeline. This tests
the script, not a GPU. Every figure is simulated.
"""

from __future__ import annotations

import copy
import platform
from collections.abc import Callable, Sequence
from typing import Any

import torch

from perfkit.clock import NS_PER_S, REAL_CLOCK
from perfkit.measuring.gpucheck import networks
from perfkit.measuring.gpucheck.bench import BLOCKING, GRAPH, Bench, Board, Monitors, Work
from perfkit.measuring.gpucheck.board_device import BoardDevice
from perfkit.measuring.gpucheck.worker import lane
from perfkit.serving.devices.device import Span, Stream
from perfkit.serving.devices.lane import Batch
from perfkit.serving.devices.simulated.preset import HostPart, load_preset
from sample_models.mlp import Mlp

_LEAST_PIECE_S = 100e-6  # a kernel of a chain of matrix products
_MOST_PIECES = 50
_MLP_S = 50e-6  # judgement: 33 MB of weights once through an H200's memory, in seven small kernels
_HZ_PER_MHZ = 1_000_000
_LARGE_COPY_BYTES = 64 << 20  # over a millisecond: work that did not wait for it would start visibly too early


class SimulatedBench:
    """A preset with a board, as a GPU under test."""

    is_simulated = True

    def __init__(self, preset_name: str) -> None:
        started_ns = REAL_CLOCK.now_ns()
        torch.set_num_threads(1)
        self.label = f"simulated:{preset_name}"
        self._preset = load_preset(preset_name)
        self.device = BoardDevice(self._preset)
        self._encoder = networks.encoder(networks.SMALL)
        self._mlp = Mlp()
        self._mlp.load(self.device, seed=0)
        self._opened_s = (REAL_CLOCK.now_ns() - started_ns) / NS_PER_S

    def environment(self) -> dict[str, Any]:
        """Says first of all that no GPU is behind the figures."""
        return {
            "note": "simulated: this tests the script, not a GPU",
            "preset_source": self._preset.source,
            "torch": torch.__version__,
            "python": platform.python_version(),
            "opened_s": self._opened_s,
        }

    def waiting(self, wait: str) -> Bench:
        """The same preset on a timeline of its own when threads are to spin."""
        if wait == BLOCKING:
            return self
        other = copy.copy(self)
        other.device = BoardDevice(self._preset, is_spinning=True)
        return other

    def mlp(self) -> Work:
        """The MLP, and its time on the timeline."""

        def call(inputs: Any) -> Any:
            self.device.compute(_MLP_S, 1.0)
            return self._mlp.predict(inputs).clone()  # out of inference mode, so that a check may write over it

        return call

    def mlp_batch(self, seed: int) -> Batch:
        """One row of 64 numbers, another for every seed."""
        return networks.mlp_row(self._mlp, seed)

    def mlp_expected(self, batches: Sequence[Batch]) -> Sequence[Any]:
        """What the MLP gives for each of them."""
        return networks.mlp_outputs(self._mlp, batches)

    def encoder(self, level: str, sizes: tuple[int, ...] = (1,)) -> Work:
        """A small encoder with the times of the preset's large one."""
        launch = self.device.replay if level == GRAPH else self._launch

        def call(ids: Any) -> Any:
            launch(len(ids))
            return self._encoder(ids)

        return call

    def texts(self, size: int, seed: int) -> Batch:
        """Token ids of a batch."""
        return networks.texts(networks.SMALL, size, seed)

    def expected(self, batch: Batch) -> Any:
        """What the encoder gives for it."""
        return self._encoder(batch.inputs)

    def spin(self, seconds: float) -> Work:
        """One multiprocessor's share of the device for so long."""
        share = 1.0 / (self._preset.device.board.sms or 1)
        return lambda _: self.device.compute(seconds, share)

    def spin_cycles(self, seconds: float) -> int:
        """At the boost clock."""
        return round(seconds * (self._preset.device.board.boost_mhz or 1) * _HZ_PER_MHZ)

    def multiply(self, seconds: float) -> Work:
        """Pieces that take the whole device, one after another."""
        pieces = max(1, min(_MOST_PIECES, round(seconds / _LEAST_PIECE_S)))

        def call(_: Any) -> None:
            for _piece in range(pieces):
                self.device.compute(seconds / pieces, 1.0)

        return call

    def copy(self, nbytes: int, is_pinned: bool) -> Callable[[Stream, Span], None]:
        """Bytes that are counted, not moved."""
        staging = self.device.buffer(nbytes, is_pinned=True) if is_pinned else None
        return lambda stream, span: self.device.copy_in(None, nbytes, stream, span, staging)

    def board(self) -> Board:
        """The preset's meters."""
        reading = self.device.read_board()
        clock_mhz = reading.sm_clock_mhz
        return Board(
            gpu_util_ratio=reading.gpu_util_ratio,
            sm_clock_hz=None if clock_mhz is None else clock_mhz * _HZ_PER_MHZ,
            missing="" if clock_mhz else f"preset {self._preset.name} has no clock",
        )

    def monitors(self, seconds: float) -> Monitors:
        """The activity that the preset's shares make; occupancy is not modelled."""
        clock = self.device.clock
        clock.sleep_until(clock.now_ns() + round(seconds * NS_PER_S))
        return Monitors(sm_active_ratio=self.device.read_board().sm_active_ratio)

    def oom_count(self) -> int:
        """Allocations that failed so far."""
        return self.device.memory().ooms

    def held_bytes(self) -> int:
        """What the allocator holds, used or kept."""
        memory = self.device.memory()
        return memory.allocated_bytes if memory.reserved_bytes is None else memory.reserved_bytes

    def unordered_uses(self, requests: int) -> list[str]:
        """On the timeline unordered work shows by its instants: a lane has to move them into their order."""
        batch = networks.HostBatch(inputs=self.mlp_batch(0).inputs, size=1, nbytes=_LARGE_COPY_BYTES)
        predict, reports = self.mlp(), []
        with lane(self, "order") as mine:
            for at in range(requests):
                _, instants = mine.run(predict, batch)
                if instants.clamped_ns:
                    reports.append(f"request {at}: stages overlap by {instants.clamped_ns} ns")
        return reports

    def _launch(self, size: int) -> None:
        self.device.launch(HostPart(), size)
