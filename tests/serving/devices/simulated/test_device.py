"""What only the simulated device offers: exact instants, host work, contention, memory of a preset."""

import dataclasses
from types import SimpleNamespace

import pytest

from perfkit.serving.devices.device import DeviceMisuse, OutOfDeviceMemory, Span
from perfkit.serving.devices.simulated.device import SimulatedDevice
from perfkit.serving.devices.simulated.preset import DeviceParts, HostPart, Preset, ServiceParts

MS = 1_000_000
SERVICE = ServiceParts(
    preprocess=HostPart(parallel_s=0.010, serial_s=0.005),
    predict=HostPart(serial_s=0.002),
    contention_per_request_ratio=0.5,
    contention_free_requests=1,
)
DEVICE = DeviceParts(
    alpha_s=0.003, beta_s=0.001, copy_latency_s=0.0, h2d_bytes_per_s=1e6, pageable_bytes_per_s=5e5, d2h_bytes_per_s=1e6,
    memory_bytes=1_000, weights_bytes=600, sm_ratio=0.5,
)  # fmt: skip
PRESET = Preset(name="tiny", source="a test", service=SERVICE, device=DEVICE)


@pytest.fixture
def device(leap_clock):
    return SimulatedDevice(PRESET, clock=leap_clock)


def ms_since_start(instants):
    names = [name for name in instants._fields if name != "clamped_ns"]
    return [(getattr(instants, name) - 1_000) / MS for name in names]


def test_a_call_copies_dispatches_computes_and_copies_back(device):
    def predict(inputs):
        device.launch(SERVICE.predict, size=4)
        return SimpleNamespace(nbytes=1_000)

    lane = device.open_lane(worker="model-0")
    _, instants = lane.run(predict, SimpleNamespace(inputs=None, size=4, nbytes=4_000))
    assert ms_since_start(instants) == [0, 4, 4, 11, 11, 12]  # the dispatch of 2 ms hides behind the copy
    assert instants.clamped_ns == 0


def test_without_a_copy_computing_starts_after_the_dispatch(device):
    lane = device.open_lane(worker="model-0")
    _, instants = lane.run(
        lambda inputs: device.launch(SERVICE.predict, size=1), SimpleNamespace(inputs=None, size=1, nbytes=0)
    )
    assert ((instants.compute_started_ns - 1_000) / MS, (instants.compute_ended_ns - 1_000) / MS) == (2, 6)


def test_a_copy_from_pageable_memory_is_slower_and_blocks_the_caller(device, leap_clock):
    span = Span(device.event(), device.event())
    device.copy_in(None, 1_000, device.stream(), span)
    assert (device.elapsed_ns(span.started, span.ended), leap_clock.at_ns) == (2 * MS, 1_000 + 2 * MS)
    device.copy_in(None, 1_000, device.stream(), span, device.buffer(1_000, is_pinned=True))
    assert leap_clock.at_ns == 1_000 + 2 * MS
    device.synchronize(span.ended)
    assert device.elapsed_ns(span.started, span.ended) == 1 * MS


def a_copy_and_a_kernel(device):
    """A worker copies 4 ms of input on one stream and then launches a kernel of 4 ms on another; when each ran."""
    start_ns = device.clock.now_ns()
    h2d, compute = Span(device.event(), device.event()), Span(device.event(), device.event())
    device.copy_in(None, 4_000, device.stream(), h2d, device.buffer(4_000, is_pinned=True))
    device.run(lambda inputs: device.compute(0.004), None, device.stream(), compute)
    for span in (h2d, compute):
        device.synchronize(span.ended)
    return [
        (device.instant_ns(event) - start_ns) / MS for span in (h2d, compute) for event in (span.started, span.ended)
    ]


def test_copies_overlap_computing_only_when_they_go_through_pinned_memory(leap_clock):
    pageable = dataclasses.replace(PRESET, device=dataclasses.replace(DEVICE, copies="pageable"))
    assert a_copy_and_a_kernel(SimulatedDevice(PRESET, clock=leap_clock)) == [0, 4, 0, 4]
    assert a_copy_and_a_kernel(SimulatedDevice(pageable, clock=leap_clock)) == [0, 8, 8, 12]


def test_both_directions_copy_at_once_and_into_pageable_memory_the_caller_waits(leap_clock):
    device = SimulatedDevice(PRESET, clock=leap_clock)
    h2d, d2h = Span(device.event(), device.event()), Span(device.event(), device.event())
    device.copy_in(None, 4_000, device.stream(), h2d, device.buffer(4_000, is_pinned=True))
    device.copy_out(SimpleNamespace(nbytes=4_000), device.stream(), d2h)
    assert leap_clock.at_ns == 1_000
    device.synchronize(d2h.ended)
    device.synchronize(h2d.ended)
    assert leap_clock.at_ns == 1_000 + 4 * MS
    pageable = dataclasses.replace(PRESET, device=dataclasses.replace(DEVICE, copies="pageable"))
    waiting = SimulatedDevice(pageable, clock=leap_clock)
    waiting.copy_out(SimpleNamespace(nbytes=4_000), waiting.stream(), d2h)
    assert leap_clock.at_ns == 1_000 + (4 + 8) * MS


def test_a_pageable_copy_waits_for_the_work_before_it_on_its_stream(device, leap_clock):
    stream, span = device.stream(), Span(device.event(), device.event())
    device.run(lambda inputs: device.compute(0.003), None, stream, Span(device.event(), device.event()))
    device.copy_in(None, 1_000, stream, span)
    assert leap_clock.at_ns == 1_000 + (3 + 2) * MS


def test_an_event_that_has_not_happened_has_no_instant(device):
    span = Span(device.event(), device.event())
    device.copy_in(None, 1_000, device.stream(), span, device.buffer(1_000, is_pinned=True))
    with pytest.raises(DeviceMisuse, match="synchronize it first"):
        device.instant_ns(span.ended)


def test_host_work_blocks_its_caller_and_grows_with_the_requests_in_flight(device, leap_clock):
    device.work(SERVICE.preprocess)
    assert leap_clock.at_ns == 1_000 + 15 * MS
    visits = [device.enter() for _ in range(3)]
    device.work(SERVICE.preprocess)
    assert leap_clock.at_ns == 1_000 + 15 * MS + 20 * MS  # 10 + 5 x (1 + 0.5 x 2)
    assert len(visits) == device.in_flight == 3


def test_device_work_outside_a_run_call_is_refused(device):
    for launch in (lambda: device.launch(SERVICE.predict, 1), lambda: device.compute(0.001)):
        with pytest.raises(DeviceMisuse, match="launch it inside predict"):
            launch()


def test_the_weights_take_their_memory_and_the_rest_can_run_out(device):
    assert device.memory().allocated_bytes == 600
    with pytest.raises(OutOfDeviceMemory, match="400 of 1000 are free"):
        device.buffer(401)
    device.close()
    assert device.memory().allocated_bytes == 0


def test_a_stream_of_higher_priority_goes_first_when_the_engine_is_free(device):
    spans = [Span(device.event(), device.event()) for _ in range(3)]
    for span, priority in zip(spans, (0, 0, -1), strict=True):
        device.run(lambda inputs: device.compute(0.001), None, device.stream(priority), span)
    for span in spans:
        device.synchronize(span.ended)
    assert [(device.instant_ns(span.started) - 1_000) / MS for span in spans] == [0, 2, 1]


def test_statistics_tell_busy_time_activity_and_requests(device, leap_clock):
    visit = device.enter()
    span = Span(device.event(), device.event())
    device.run(lambda inputs: device.launch(SERVICE.predict, 1), None, device.stream(), span)
    leap_clock.sleep_until(1_000 + 100 * MS)
    stats = device.stats()
    assert stats.pop("simulated_gpu_util_ratio") == pytest.approx(4 * MS / (10**9 / 6), rel=1e-6)
    assert stats == {
        "simulated_compute_busy_s": 0.004,
        "simulated_h2d_busy_s": 0.0,
        "simulated_d2h_busy_s": 0.0,
        "simulated_host_busy_s": 0.002,
        "simulated_sm_active_s": 0.002,
        "simulated_allocated_bytes": 600.0,
        "simulated_in_flight_requests": 1.0,
        "simulated_memory_used_bytes": 600.0,
        "simulated_memory_total_bytes": 1_000.0,
    }
    visit.leave()
