"""Do a device's own figures become series with units, the simulated one's where a GPU's are looked for?"""

import pytest

from perfkit.measuring.collectors.collector import SeriesRow
from perfkit.measuring.collectors.deviceview import DeviceView, split_unit


def stats(time_ns, figures, name="simulated", simulated=True):
    return {"simulated": simulated, "gauge": {"time_ns": time_ns}, "device": {"name": name, "figures": figures}}


def test_a_simulated_devices_figures_stand_where_a_gpus_do():
    view = DeviceView()
    view.note(stats(5, {"simulated_gpu_util_ratio": 1.0, "simulated_sm_active_s": 0.25, "simulated_in_flight": 3}))
    assert view.recording().series == [
        SeriesRow(5, "gpu:simulated", "gpu_util", "ratio", 1.0),
        SeriesRow(5, "gpu:simulated", "sm_active", "s", 0.25),
        SeriesRow(5, "gpu:simulated", "in_flight", "count", 3.0),
    ]


def test_a_real_devices_own_figures_are_not_taken_for_the_drivers():
    view = DeviceView()
    view.note(stats(5, {"device_allocated_bytes": 10.0}, name="cpu", simulated=False))
    assert view.recording().series == [SeriesRow(5, "device:cpu", "allocated", "bytes", 10.0)]


def test_a_server_that_tells_no_figures_adds_none():
    view = DeviceView()
    view.note({"simulated": False, "gauge": {"time_ns": 1}, "device": {"name": "cpu"}})
    assert view.recording().series == []


@pytest.mark.parametrize(
    ("figure", "name", "unit"),
    [
        ("power_w", "power", "W"),
        ("energy_j", "energy", "J"),
        ("ooms", "ooms", "count"),
        ("sm_clock_hz", "sm_clock", "Hz"),
    ],
)
def test_the_unit_is_the_names_ending(figure, name, unit):
    assert split_unit(figure) == (name, unit)
