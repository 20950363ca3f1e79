"""The card's view: how much of a window had a kernel, how full it was, what its meters show."""

import pytest

from perfkit.clock import NS_PER_S
from perfkit.serving.devices.device import Span
from perfkit.serving.devices.simulated.device import SimulatedDevice
from perfkit.serving.devices.simulated.parts import BoardParts
from perfkit.serving.devices.simulated.preset import DeviceParts, Preset, ServiceParts
from perfkit.serving.devices.simulated.view import (
    WINDOW_NS,
    BoardReading,
    covered_ratio,
    utilisation_ratio,
    weighed_ratio,
)

BOARD = BoardParts(sms=132, idle_w=100.0, peak_w=700.0, idle_mhz=345, boost_mhz=1980)


@pytest.mark.parametrize(
    ("intervals", "ratio"),
    [
        ([], 0.0),
        ([(0, 200)], 1.0),
        ([(90, 110), (150, 160)], 0.2),  # cut at the window's start
        ([(190, 300)], 0.1),  # a kernel that still runs counts up to now
        ([(0, 50), (250, 300)], 0.0),
    ],
)
def test_covered_ratio_is_the_share_of_the_window(intervals, ratio):
    assert covered_ratio(intervals, 100, 200) == pytest.approx(ratio)


def test_utilisation_looks_back_one_sixth_of_a_second():
    now_ns = 10 * WINDOW_NS
    assert utilisation_ratio([(now_ns - 2 * WINDOW_NS, now_ns - WINDOW_NS // 2)], now_ns) == pytest.approx(0.5)


def test_weighed_activity_counts_each_run_with_its_share():
    runs = [(50, 150, 0.5), (100, 200, 0.25), (300, 400, 1.0)]
    assert weighed_ratio(runs, 100, 200) == pytest.approx(0.5)


def reading_after_one_kernel(clock, board, sm_ratio):
    """The meters at the end of a kernel of two seconds."""
    parts = DeviceParts(memory_bytes=1_000, weights_bytes=400, board=board)
    device = SimulatedDevice(Preset(name="tiny", source="a test", service=ServiceParts(), device=parts), clock=clock)
    span = Span(device.event(), device.event())
    device.run(lambda inputs: device.compute(2.0, sm_ratio), None, device.stream(), span)
    device.synchronize(span.ended)
    return device, device.read_board()


def test_a_kernel_of_one_block_makes_a_busy_card_that_is_hardly_active(leap_clock):
    device, reading = reading_after_one_kernel(leap_clock, BOARD, sm_ratio=1 / 132)
    assert reading == BoardReading(
        time_ns=1_000 + 2 * NS_PER_S,
        gpu_util_ratio=1.0,
        sm_active_ratio=pytest.approx(0.00758, abs=1e-5),
        memory_used_bytes=400,
        memory_total_bytes=1_000,
        sms=132,
        power_w=pytest.approx(100 + 600 / 132),
        energy_j=pytest.approx(2 * (100 + 600 / 132)),
        sm_clock_mhz=1980,
    )
    leap_clock.sleep_until(leap_clock.now_ns() + NS_PER_S // 2)
    assert device.read_board().sm_clock_mhz == 345
    assert device.read_board().power_w == pytest.approx(100 + 300 / 132)  # half of its second lies in the kernel


def test_the_statistics_hold_the_meters_that_the_preset_models_in_base_units(leap_clock):
    device, reading = reading_after_one_kernel(leap_clock, BOARD, sm_ratio=1.0)
    stats = device.stats()
    told = {name: stats.get(f"simulated_{name}") for name in ("power_w", "energy_j", "sm_clock_hz")}
    assert told == {"power_w": reading.power_w, "energy_j": reading.energy_j, "sm_clock_hz": 1980e6}
    plain, _ = reading_after_one_kernel(leap_clock, BoardParts(), sm_ratio=1.0)
    assert "simulated_power_w" not in plain.stats()


def test_what_a_preset_does_not_model_has_no_reading(leap_clock):
    _, reading = reading_after_one_kernel(leap_clock, BoardParts(), sm_ratio=1.0)
    assert (reading.power_w, reading.energy_j, reading.sm_clock_mhz, reading.sms) == (None,) * 4
    assert (reading.gpu_util_ratio, reading.sm_active_ratio) == (1.0, 1.0)
