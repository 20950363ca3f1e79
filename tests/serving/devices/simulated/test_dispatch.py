"""Launching on the virtual clock: who sets the pace, host or device, and who may go in between. Instants by hand."""

import dataclasses

import pytest

from perfkit.clock import thread_cpu_ns
from perfkit.serving.devices.device import Span
from perfkit.serving.devices.simulated.device import SimulatedDevice
from perfkit.serving.devices.simulated.parts import LaunchParts
from perfkit.serving.devices.simulated.preset import DeviceParts, HostPart, Preset, ServiceParts

MS = 1_000_000


def preset_with(launches, compute_s, **device):
    parts = DeviceParts(alpha_s=compute_s, launches=launches, **device)
    return Preset(name="tiny", source="a test", service=ServiceParts(), device=parts)


def spans_ms(device, clock, *priorities):
    """Calls launched at the same instant, one on each stream: when each computed, in milliseconds."""
    spans = [Span(device.event(), device.event()) for _ in priorities]
    start_ns = clock.now_ns()
    for span, priority in zip(spans, priorities, strict=True):
        device.run(lambda inputs: device.launch(HostPart(), 1), None, device.stream(priority), span)
    for span in spans:
        device.synchronize(span.ended)
    return [tuple((device.instant_ns(event) - start_ns) / MS for event in (s.started, s.ended)) for s in spans]


ONE_BY_ONE = LaunchParts(kernels=4, chunks=4, launch_s=0.001)
GRAPH = dataclasses.replace(ONE_BY_ONE, graph_launch_s=0.001)
FREE = LaunchParts(kernels=4, chunks=4)


@pytest.mark.parametrize(
    ("launches", "compute_s", "expected"),
    [
        (ONE_BY_ONE, 0.002, (1, 4.5)),  # bound by launches: 4 x 1 ms, and the last kernel of 0.5 ms
        (ONE_BY_ONE, 0.008, (1, 9)),  # bound by the device: one launch, and 4 kernels of 2 ms
        (GRAPH, 0.002, (1, 3)),  # one launch for all
        (LaunchParts(kernels=4, launch_s=0.001), 0.002, (4, 6)),  # one piece: nothing overlaps
        (FREE, 0.002, (0, 2)),
    ],
)
def test_the_slower_of_host_and_device_sets_the_pace(launches, compute_s, expected, leap_clock):
    device = SimulatedDevice(preset_with(launches, compute_s), clock=leap_clock)
    assert spans_ms(device, leap_clock, 0) == [expected]


def test_a_call_that_launches_keeps_the_lock_until_it_is_through(leap_clock):
    device = SimulatedDevice(preset_with(ONE_BY_ONE, 0.002), clock=leap_clock)
    assert spans_ms(device, leap_clock, 0, 0) == [(1, 4.5), (5, 8.5)]


def test_a_stream_of_higher_priority_goes_in_between_two_kernels_and_interrupts_none(leap_clock):
    device = SimulatedDevice(preset_with(FREE, 0.004), clock=leap_clock)
    assert spans_ms(device, leap_clock, 0, -1) == [(0, 8), (1, 5)]
    whole = SimulatedDevice(preset_with(LaunchParts(), 0.004), clock=leap_clock)
    assert spans_ms(whole, leap_clock, 0, -1) == [(0, 4), (4, 8)]


def test_kernels_that_fill_half_the_card_run_in_pairs(leap_clock):
    device = SimulatedDevice(preset_with(LaunchParts(), 0.002, compute_slots=4, sm_ratio=0.5), clock=leap_clock)
    assert spans_ms(device, leap_clock, 0, 0, 0) == [(0, 2), (0, 2), (2, 4)]
    full = SimulatedDevice(preset_with(LaunchParts(), 0.002, compute_slots=4), clock=leap_clock)
    assert spans_ms(full, leap_clock, 0, 0) == [(0, 2), (2, 4)]


def test_pieces_add_up_to_the_whole_to_the_nanosecond(leap_clock):
    device = SimulatedDevice(preset_with(LaunchParts(kernels=7, chunks=7), 0.000_001_003), clock=leap_clock)
    assert spans_ms(device, leap_clock, 0) == [(0, 0.001003)]


@pytest.mark.parametrize(("lock", "computes"), [("held", True), ("modelled", False)])
def test_on_a_real_clock_a_held_lock_costs_the_launching_thread_its_own_processor_time(lock, computes):
    device = SimulatedDevice(preset_with(LaunchParts(kernels=100, launch_s=0.0005, chunks=10, lock=lock), 0.001))
    span = Span(device.event(), device.event())
    before_ns = thread_cpu_ns()
    device.run(lambda inputs: device.launch(HostPart(), 1), None, device.stream(), span)
    assert (thread_cpu_ns() - before_ns >= 50 * MS) == computes
    device.synchronize(span.ended)


def test_off_the_real_clock_a_held_lock_is_modelled(leap_clock):
    held = dataclasses.replace(ONE_BY_ONE, lock="held")
    device = SimulatedDevice(preset_with(held, 0.002), clock=leap_clock)
    assert spans_ms(device, leap_clock, 0) == [(1, 4.5)]
