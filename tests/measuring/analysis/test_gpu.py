"""Do a GPU's figures cover the measured windows, name the throttling, and leave out what was not told?"""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from perfkit.clock import NS_PER_S
from perfkit.measuring.analysis.gpu import gpu_figures, throttle_names
from perfkit.measuring.analysis.measured import measure_windows

SOURCE = "gpu:GPU-7"


def row(time_ns, name, unit, value, source=SOURCE):
    return {"time_ns": time_ns, "source": source, "name": name, "unit": unit, "value": value}


def series_over(run, make):
    """What `make(time_ns, since_start_s)` gives at five instants a second of the run."""
    times = np.arange(run.started_ns, run.ended_ns, NS_PER_S // 5)
    return pd.DataFrame([one for at in times for one in make(int(at), (int(at) - run.started_ns) / NS_PER_S)])


def figures(run, make, **changes):
    changed = dataclasses.replace(run, series=series_over(run, make), **changes)
    return gpu_figures(changed, measure_windows(changed))


def test_a_gpus_figures_are_means_over_the_windows_and_joules_over_good_replies(healthy_open_run):
    def make(at, since_s):
        yield row(at, "gpu_util", "ratio", 1.0)
        yield row(at, "sm_active", "ratio", 0.01)
        yield row(at, "memory_used", "bytes", 5.0 + since_s)
        yield row(at, "throttle", "mask", 5.0 if since_s > 5 else 1.0)
        yield row(at, "energy", "J", 600.0 * since_s)
        yield row(at, "power", "W", 600.0)

    facts = {"uuid": "GPU-7", "name": "H200", "missing": {"pcie": "not on this one"}}
    (found,) = figures(healthy_open_run, make, gpus=[facts])
    measured = measure_windows(healthy_open_run)
    assert (found.name, found.gpu_util_ratio, found.missing) == ("H200", 1.0, {"pcie": "not on this one"})
    assert found.sm_active_ratio == pytest.approx(0.01)
    assert found.energy_per_request_j == pytest.approx(600.0 / measured.throughput_rps)
    assert found.throttles == ("power cap",)
    assert (found.sm_occupancy_ratio, found.sm_clock_hz) == (None, None)


def test_the_drivers_own_history_is_believed_before_the_polled_gauge(healthy_open_run):
    def make(at, since_s):
        yield row(at, "gpu_util", "ratio", 0.0)
        yield row(at, "gpu_util_history", "ratio", 0.5)

    (found,) = figures(healthy_open_run, make)
    assert found.gpu_util_ratio == 0.5


def test_what_lies_outside_the_windows_counts_nothing(healthy_open_run):
    before = healthy_open_run.started_ns - NS_PER_S
    series = pd.DataFrame([row(before, "gpu_util", "ratio", 1.0)])
    run = dataclasses.replace(healthy_open_run, series=series)
    (found,) = gpu_figures(run, measure_windows(run))
    assert found.gpu_util_ratio is None


def test_an_energy_counter_that_stands_still_is_no_energy_of_zero(healthy_open_run):
    (found,) = figures(healthy_open_run, lambda at, _: [row(at, "energy", "J", 7.0)])
    assert found.energy_per_request_j is None


@pytest.mark.parametrize(("device", "is_told"), [("cpu", False), ("cuda:0", True)])
def test_a_service_that_computes_on_the_cpu_is_not_charged_for_an_idle_gpu(healthy_open_run, device, is_told):
    def make(at, since_s):
        yield row(at, "energy", "J", 70.0 * since_s)
        yield row(at, "allocated", "bytes", 0.0, source=f"device:{device}")

    (found,) = figures(healthy_open_run, make)
    assert (found.energy_per_request_j is not None) == is_told


def test_a_simulated_run_is_described_by_its_own_device_and_a_real_run_by_the_real_ones(healthy_open_run):
    def make(at, since_s):
        yield row(at, "sm_active", "s", 0.25 * since_s, source="gpu:simulated")
        yield row(at, "gpu_util", "ratio", 0.0)
        yield row(at, "memory_used", "bytes", 1.0, source=f"{SOURCE}:pid:12")

    (simulated,) = figures(healthy_open_run, make, simulated=True)
    assert (simulated.gpu, simulated.simulated) == ("simulated", True)
    assert simulated.sm_active_ratio == pytest.approx(0.25)
    (real,) = figures(healthy_open_run, make)
    assert (real.gpu, real.gpu_util_ratio) == ("GPU-7", 0.0)


def test_a_run_without_a_gpu_has_none(healthy_run):
    assert gpu_figures(healthy_run, measure_windows(healthy_run)) == ()


@pytest.mark.parametrize(
    ("masks", "names"),
    [([], ()), ([1.0, 2.0], ()), ([4.0, 0x40, 4.0], ("power cap", "heat (hardware)"))],
)
def test_idle_and_a_set_clock_are_no_throttling(masks, names):
    assert throttle_names(masks) == names
