"""The pictures of a device's checks hold their figures, with units on every axis."""

import pytest

from perfkit.showing.plots import device


def bars(figure):
    """Each panel's axis and its bars, by name."""
    return [
        (figure.layout[f"yaxis{at or ''}"].title.text, dict(zip(trace.x, trace.y, strict=True)))
        for at, trace in zip((0, 2), figure.data, strict=False)
    ]


def curves(figure):
    """Name -> points of every line."""
    return {trace.name: list(zip(trace.x, trace.y, strict=True)) for trace in figure.data}


def test_copies_are_compared_in_bandwidth_and_in_time():
    pinned = {"pinned_bytes_per_s": 50e9, "pageable_bytes_per_s": 12e9}
    overlap = {"copy_s": 0.005, "chain_s": 0.006, "together_s": 0.0065}
    figure = device.plot_copies(pinned, overlap, simulated=True)
    assert bars(figure) == [
        ("host to device (GB/s)", {"pageable": 12.0, "pinned": 50.0}),
        ("copy and computation (ms)", {"one after the other": pytest.approx(11.0), "together": pytest.approx(6.5)}),
    ]
    assert figure.layout.title.text == "Copies to the device (simulated)"


def test_priority_is_a_curve_over_the_load_with_the_claim_as_a_line():
    saving = {"0.3": {"normal_s": 0.002, "high_s": 0.001, "saving_ratio": 0.5}}
    figure = device.plot_priority(saving, simulated=False)
    assert curves(figure) == {
        "normal priority": [(30.0, 2.0)],
        "high priority": [(30.0, 1.0)],
        "change by high priority": [(30.0, -50.0)],
    }
    assert [shape.y0 for shape in figure.layout.shapes] == [-40.0]
    assert figure.layout.title.text == "Stream priority under load"


def test_a_call_s_time_is_drawn_over_its_size_for_both_ways_of_launching():
    line = {"inference_mode": {"seconds_by_size": {"1": 0.007}}, "cuda_graph": {"seconds_by_size": {"1": 0.001}}}
    assert curves(device.plot_sizes(line, simulated=True)) == {
        "kernel by kernel": [(1, 7.0)],
        "as one CUDA graph": [(1, 1.0)],
    }


def test_throughput_is_drawn_over_the_threads_that_feed_the_device():
    rows = [
        {"level": "inference_mode", "threads": 1, "throughput_rps": 70.0},
        {"level": "cuda_graph", "threads": 1, "throughput_rps": 900.0},
        {"level": "cuda_graph", "threads": 2, "throughput_rps": 1700.0},
    ]
    assert curves(device.plot_threads({"rows": rows}, simulated=True)) == {
        "kernel by kernel": [(1, 70.0)],
        "as one CUDA graph": [(1, 900.0), (2, 1700.0)],
    }


def test_waiting_is_compared_in_cores_and_in_wake_lag():
    cpu = {"asleep_cpu_s": 0.1, "spinning_cpu_s": 4.0, "wall_s": 2.0}
    assert bars(device.plot_waiting(cpu, {"asleep_s": 3e-4, "spinning_s": 1e-4}, simulated=True)) == [
        ("cores busy with waiting", {"asleep": 0.05, "spinning": 2.0}),
        ("median wake lag (µs)", {"asleep": pytest.approx(300), "spinning": pytest.approx(100)}),
    ]


def test_a_meter_that_the_driver_does_not_tell_is_no_zero():
    util = {"rest_ratio": 0.0, "spinning_ratio": 1.0, "multiplying_ratio": 1.0}
    figure = device.plot_meters(util, {"spinning_sm_active_ratio": None}, simulated=False)
    assert bars(figure)[1] == ("multiprocessors active (%)", {"one block": None, "matrix products": None})
    assert figure.data[1].text == ("not told", "not told")


def test_the_convoy_is_drawn_as_lag_and_as_idleness():
    lag = {"alone_p50_s": 0.001, "alone_p99_s": 0.002, "beside_p50_s": 0.005, "beside_p99_s": 0.010}
    figure = device.plot_convoy(lag, {"alone_gpu_util_ratio": 0.9, "beside_gpu_util_ratio": 0.3}, simulated=True)
    assert bars(figure) == [
        ("wake lag (ms)", {"P50 alone": 1.0, "P50 beside": 5.0, "P99 alone": 2.0, "P99 beside": 10.0}),
        ("GPU utilisation (%)", {"alone": 90.0, "beside": 30.0}),
    ]
