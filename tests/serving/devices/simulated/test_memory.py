"""What calls take of the device's memory, when they let go of it, and what that costs. Instants by hand."""

import pytest

from perfkit.serving.devices.device import DeviceMisuse, OutOfDeviceMemory, Span
from perfkit.serving.devices.simulated.allocator import MIB
from perfkit.serving.devices.simulated.device import POOLS_PER_PRIORITY, SimulatedDevice
from perfkit.serving.devices.simulated.parts import MemoryParts
from perfkit.serving.devices.simulated.preset import DeviceParts, HostPart, Preset, ServiceParts

MS = 1_000_000
COSTS = {"hit_s": 0.001, "miss_s": 0.003, "segment_free_s": 0.005}


def device_with(clock, memory, capacity_bytes=100 * MIB):
    parts = DeviceParts(alpha_s=0.010, memory_bytes=capacity_bytes, memory=memory)
    return SimulatedDevice(Preset(name="tiny", source="a test", service=ServiceParts(), device=parts), clock=clock)


def call(device, stream, size=1):
    """Launch a call and return its span, without waiting for it."""
    span = Span(device.event(), device.event())
    device.run(lambda inputs: device.launch(HostPart(), size), None, stream, span)
    return span


def held_mib(device):
    memory = device.memory()
    return memory.allocated_bytes / MIB, None if memory.reserved_bytes is None else memory.reserved_bytes / MIB


@pytest.mark.parametrize(("policy", "reserved"), [("exact", None), ("caching", 32)])
def test_a_call_holds_its_memory_until_its_device_work_is_done(policy, reserved, leap_clock):
    parts = MemoryParts(policy=policy, call_bytes=12 * MIB, request_bytes=10 * MIB)
    device = device_with(leap_clock, parts)
    span = call(device, device.stream(), size=2)
    assert held_mib(device) == (32, reserved)
    device.synchronize(span.ended)
    assert held_mib(device) == (0, reserved)


@pytest.mark.parametrize(
    ("policy", "held"),
    [
        ("exact", 100),
        ("caching", 40),  # the refused call's segments must go back first, which waits for the first call's end
    ],
)
def test_a_call_that_does_not_fit_holds_nothing_and_the_rest_goes_on(policy, held, leap_clock):
    device = device_with(leap_clock, MemoryParts(policy=policy, request_bytes=20 * MIB))
    call(device, device.stream(), size=3)
    with pytest.raises(OutOfDeviceMemory):
        call(device, device.stream(), size=3)
    assert (held_mib(device)[0], device.memory().ooms) == (60, 1)
    call(device, device.stream(), size=2)
    assert held_mib(device)[0] == held


def test_new_segments_kept_ones_and_given_back_ones_cost_their_time(leap_clock):
    device = device_with(leap_clock, MemoryParts(policy="caching", call_bytes=60 * MIB, **COSTS))
    first, second = device.stream(), device.stream()

    def launched_after_ms(stream):
        before_ns = leap_clock.now_ns()
        span = call(device, stream)
        after_ns = leap_clock.now_ns()
        device.synchronize(span.ended)
        return (after_ns - before_ns) / MS

    assert launched_after_ms(first) == 3  # a new segment
    assert launched_after_ms(first) == 1  # out of what the stream kept
    assert launched_after_ms(second) == 8  # the first stream's segment goes back, and a new one comes
    assert device.memory().retries == 1


def test_emptying_the_cache_after_every_call_makes_each_take_its_segments_anew(leap_clock):
    kept, emptied = (
        device_with(leap_clock, MemoryParts(policy="caching", call_bytes=30 * MIB, empties=empties, **COSTS))
        for empties in (False, True)
    )

    def three_calls_ms(device):
        stream, before_ns = device.stream(), leap_clock.now_ns()
        for _ in range(3):
            device.synchronize(call(device, stream).ended)
        return (leap_clock.now_ns() - before_ns) / MS

    assert three_calls_ms(kept) == (3 + 10) + 2 * (1 + 10)
    assert three_calls_ms(emptied) == 3 * (3 + 10 + 5)


def test_giving_memory_back_waits_until_the_whole_device_is_at_rest(leap_clock):
    device = device_with(leap_clock, MemoryParts(policy="caching", call_bytes=30 * MIB, **COSTS))
    busy, idle, hungry = device.stream(), device.stream(), device.stream()
    device.synchronize(call(device, idle).ended)
    device.synchronize(call(device, hungry).ended)
    call(device, busy)  # computes for 10 ms; 90 of 100 MiB are reserved
    device.buffer(30 * MIB, is_pinned=True)
    before_ns = leap_clock.now_ns()
    device.release_cache()
    assert (leap_clock.now_ns() - before_ns) / MS == 10 + 2 * 5
    assert held_mib(device) == (0, 30)


def test_each_stream_keeps_a_pool_of_its_own_so_fifteen_of_them_can_exhaust_the_device(leap_clock):
    device = device_with(leap_clock, MemoryParts(policy="caching", call_bytes=7 * MIB), capacity_bytes=14 * 20 * MIB)
    streams = [device.stream() for _ in range(15)]
    for stream in streams[:14]:
        call(device, stream)
    assert held_mib(device) == (14 * 7, 14 * 20)  # segments of 20 MiB for blocks of 7
    with pytest.raises(OutOfDeviceMemory, match="lie in pools that cannot give them"):
        call(device, streams[14])
    call(device, streams[0])  # its own pool still has room for a second block


def test_a_stream_keeps_its_workspace_and_the_33rd_stream_shares_the_firsts(leap_clock):
    device = device_with(leap_clock, MemoryParts(stream_bytes=MIB))
    streams = [device.stream() for _ in range(POOLS_PER_PRIORITY + 1)]
    for stream in (streams[0], streams[0], streams[1], streams[-1]):
        device.synchronize(call(device, stream).ended)
    assert held_mib(device) == (2, None)


def test_a_cap_and_the_context_leave_less_to_take(leap_clock):
    device = device_with(leap_clock, MemoryParts(cap_ratio=0.5, context_bytes=10 * MIB))
    with pytest.raises(OutOfDeviceMemory, match=f"{40 * MIB} of {40 * MIB} are free"):
        device.buffer(40 * MIB + 1)
    assert device.read_board().memory_used_bytes == 10 * MIB


def test_a_call_that_raises_before_it_launches_lets_go_at_once(leap_clock):
    device = device_with(leap_clock, MemoryParts(call_bytes=MIB))
    lane = device.open_lane("model-0")

    def fails(inputs):
        device.launch(HostPart(), 1)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        lane.run(fails, type("Batch", (), {"inputs": None, "nbytes": 0, "size": 1}))
    leap_clock.sleep_until(leap_clock.now_ns() + 10 * MS)
    assert held_mib(device) == (0, None)


def test_a_pooled_buffer_is_freed_once(leap_clock):
    device = device_with(leap_clock, MemoryParts(policy="caching"))
    buffer = device.buffer(100)
    device.free(buffer)
    with pytest.raises(DeviceMisuse, match="free a buffer once"):
        device.free(buffer)
