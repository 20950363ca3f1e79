"""What must the simulated device do besides, to stand in for a GPU? Replay graphs, and let waiters spin."""

from __future__ import annotations

import ctypes
import dataclasses

from perfkit.serving.devices.device import DeviceMisuse
from perfkit.serving.devices.simulated.device import SimulatedDevice, SimulatedEvent
from perfkit.serving.devices.simulated.dispatch import Dispatch
from perfkit.serving.devices.simulated.preset import Preset

_spin_once = ctypes.CDLL(None).sched_yield  # a foreign call lets Python's lock go, as CUDA's spinning does
GRAPH_LAUNCH_S = 10e-6  # expected host time of one replay, whatever the number of its kernels


class BoardDevice(SimulatedDevice):
    """A simulated device for the check. Safe from several threads."""

    def __init__(self, preset: Preset, *, is_spinning: bool = False) -> None:
        super().__init__(preset)
        self._is_spinning = is_spinning
        as_graph = dataclasses.replace(preset.device.launches, graph_launch_s=GRAPH_LAUNCH_S)
        self._replays = Dispatch(as_graph, self._driver, self.clock)

    def replay(self, size: int) -> None:
        """As `launch`, but as one captured graph."""
        stream = self._stream_of_run()
        if self._takes_memory:
            self._take_memory(size, stream)
        self._note_in_run(self._replays.launch(stream, [], self.preset.compute_step(size)))

    def synchronize(self, event: SimulatedEvent) -> None:
        """Block until the event has happened, asleep or on the processor."""
        while self._is_spinning and not self._has_happened(event):
            _spin_once()
        super().synchronize(event)

    def _has_happened(self, event: SimulatedEvent) -> bool:
        try:
            self.instant_ns(event)
        except DeviceMisuse:
            return False
        return True
