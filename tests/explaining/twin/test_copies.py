"""Are a device's copy rates found from the times of its copies?"""

from __future__ import annotations

import dataclasses

import pytest

from perfkit.clock import RealClock
from perfkit.explaining.twin.copies import measure_copies
from perfkit.serving.devices.simulated.device import SimulatedDevice
from perfkit.serving.devices.simulated.preset import DEFAULT_PRESET, DeviceParts


class LeapClock(RealClock):
    """Whoever sleeps arrives at once: virtual time for a single thread."""

    def __init__(self):
        self.at_ns = 1_000  # 0 is what an event says that has not happened

    def now_ns(self):
        return self.at_ns

    def sleep_until(self, until_ns):
        self.at_ns = max(self.at_ns, until_ns)


def test_the_rates_of_a_simulated_device_are_those_of_its_preset():
    parts = {
        "h2d_bytes_per_s": 20e9,
        "d2h_bytes_per_s": 10e9,
        "pageable_bytes_per_s": 5e9,
        "copy_latency_s": 12e-6,
    }
    device = SimulatedDevice(dataclasses.replace(DEFAULT_PRESET, device=DeviceParts(**parts)), clock=LeapClock())
    assert dataclasses.asdict(measure_copies(device)) == pytest.approx(parts, rel=1e-3)
    assert device.memory().pinned_bytes == 0
