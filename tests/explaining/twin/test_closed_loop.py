"""Does the virtual service keep what is known of closed loops, batches and windows?"""

from __future__ import annotations

import dataclasses

import pytest

from perfkit.explaining.twin.closed_loop import Cell, run_cell
from perfkit.serving.devices.simulated.preset import DEFAULT_PRESET, DeviceParts, HostPart, ServiceParts
from perfkit.serving.devices.simulated.virtual import run_closed


def preset(service=None, **device):
    return dataclasses.replace(DEFAULT_PRESET, service=service or ServiceParts(), device=DeviceParts(**device))


def rate(of, **cell):
    return run_cell(of, Cell(**cell), requests=2_000).throughput_rps


def test_full_batches_leave_as_fast_as_the_device_computes():
    device = preset(alpha_s=0.010, beta_s=0.001)
    assert rate(device, users=32, workers=1, max_size=1) == pytest.approx(1 / 0.011, rel=1e-3)
    assert rate(device, users=32, workers=1, max_size=8) == pytest.approx(8 / 0.018, rel=1e-3)


def test_fewer_users_than_a_batch_holds_fill_it_as_far_as_there_are_users():
    assert rate(preset(alpha_s=0.010, beta_s=0.001), users=4, workers=1, max_size=16) == pytest.approx(
        4 / 0.014, rel=1e-3
    )


def test_without_batches_it_agrees_with_the_loop_that_carries_single_requests():
    service = ServiceParts(preprocess=HostPart(parallel_s=0.02, serial_s=0.002))
    both = preset(service, alpha_s=0.005)
    single = run_closed(both, customers=8, workers=4, requests=2_000)
    assert rate(both, users=8, workers=4, max_size=1) == pytest.approx(single.throughput_rps, rel=5e-3)


def test_the_lock_bounds_everything_that_passes_it_around_the_stages_included():
    service = ServiceParts(server=HostPart(serial_s=0.002), postprocess=HostPart(serial_s=0.003))
    assert rate(preset(service, alpha_s=0.001), users=16, workers=4, max_size=1) == pytest.approx(200, rel=5e-3)


def test_a_users_pause_is_part_of_its_round():
    service = ServiceParts(server=HostPart(parallel_s=0.030))
    run = run_cell(preset(service, alpha_s=0.010), Cell(users=1, workers=1, max_size=1), requests=100)
    assert (run.throughput_rps, run.mean_latency_s) == (pytest.approx(25.0), pytest.approx(0.010))


def test_kernels_beside_each_other_slow_each_other_down():
    device = {"alpha_s": 0.010, "compute_slots": 2, "sm_ratio": 0.5}
    assert rate(preset(**device), users=8, workers=2, max_size=1) == pytest.approx(200, rel=1e-3)
    # The first starts alone, each later one beside another: two of 12.5 ms at a time.
    assert rate(preset(**device, corun_ratio=0.25), users=8, workers=2, max_size=1) == pytest.approx(160, rel=1e-2)


def test_calls_beyond_the_processors_share_their_time_and_gain_nothing():
    cpu = preset(alpha_s=0.010, compute_slots=2, sm_ratio=0.0, time_sharing=True, corun_ratio=0.25)
    assert rate(cpu, users=8, workers=1, max_size=1) == pytest.approx(100, rel=1e-3)
    assert rate(cpu, users=8, workers=2, max_size=1) == pytest.approx(160, rel=1e-2)
    shared = run_cell(cpu, Cell(users=8, workers=6, max_size=1), requests=600)
    assert shared.throughput_rps == pytest.approx(160, rel=2e-2)
    assert len({round(latency_ns / 1e6) for latency_ns in shared.latencies_ns[100:]}) <= 3


def test_a_window_gathers_a_batch_that_an_idle_worker_would_have_sent_apart():
    service = ServiceParts(server=HostPart(serial_s=0.002))
    device = preset(service, alpha_s=0.010)
    at_once = run_cell(device, Cell(users=4, workers=4, max_size=4), requests=400)
    gathered = run_cell(device, Cell(users=4, workers=4, max_size=4, max_delay_s=0.050), requests=400)
    # Four requests come 1 ms apart and leave together; the device then answers them 1 ms apart.
    assert gathered.throughput_rps == pytest.approx(4 / 0.018, rel=0.02)
    assert gathered.throughput_rps > 1.5 * at_once.throughput_rps
