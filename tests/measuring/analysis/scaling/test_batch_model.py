"""The batch model: known answers, what batching can give, Inoue's bound, and refusals."""

import numpy as np
import pytest

from perfkit.explaining.twin.closed_loop import Cell, run_cell
from perfkit.measuring.analysis.blocks import block_edges, block_means, mean_interval
from perfkit.measuring.analysis.scaling.batch_model import BatchModel, fit_batch_model
from perfkit.measuring.analysis.scaling.refusal import Refusal
from perfkit.measuring.analysis.summary import summarise
from perfkit.serving.devices.simulated.preset import load_preset

FIXED_S, PER_REQUEST_S = 0.008, 0.002


def call(size, mean_s, sd_s=0.0, batches=100):
    """The calls of one size as a point's JSON holds them."""
    return {
        "size": size,
        "batches": batches,
        "occupied_s": mean_s,
        "occupied_sd_s": sd_s,
        "compute_s": mean_s / 2,
        "compute_sd_s": sd_s / 2,
    }


def with_calls(point, calls, **settings):
    batch = {"max_size": 16} | settings.pop("batch", {})
    return point(16, 100.0, name="batch.max_size") | {
        "settings": {"device": "cpu", "batch": batch, **settings},
        "calls": calls,
    }


@pytest.fixture
def line(point):
    """A point whose calls lie on a line: `line(fixed_s, per_request_s, sizes)`."""

    def build(fixed_s=FIXED_S, per_request_s=PER_REQUEST_S, sizes=(1, 2, 4, 8)):
        return [with_calls(point, [call(size, fixed_s + per_request_s * size) for size in sizes])]

    return build


def test_exact_calls_give_the_line_back(line):
    found = fit_batch_model(line(), "occupied")
    assert (found.fixed_s.value, found.per_request_s.value) == pytest.approx((FIXED_S, PER_REQUEST_S))
    assert (found.sizes, found.batches, found.device) == ((1, 2, 4, 8), 400, "cpu")
    assert found.max_rps(8) == pytest.approx(8 / 0.024)
    assert fit_batch_model(line(), "compute").fixed_s.value == pytest.approx(FIXED_S / 2)


@pytest.mark.parametrize("cv", [0.02, 0.2])
def test_the_intervals_cover_the_line_that_made_the_calls(point, cv):
    rng, held, sizes = np.random.default_rng(5), [], np.repeat([1, 2, 3, 4, 6, 8], 50)
    for _ in range(200):
        seconds = (FIXED_S + PER_REQUEST_S * sizes) * (1 + cv * rng.normal(size=len(sizes)))
        calls = [
            call(size, float(seconds[sizes == size].mean()), float(seconds[sizes == size].std(ddof=1)), 50)
            for size in np.unique(sizes).tolist()
        ]
        found = fit_batch_model([with_calls(point, calls)], "occupied")
        held.append(
            (
                found.fixed_s.low <= FIXED_S <= found.fixed_s.high,
                found.per_request_s.low <= PER_REQUEST_S <= found.per_request_s.high,
            )
        )
    fixed, slope = np.mean(held, axis=0)
    print(f"simulated: coverage at cv {cv}: fixed time {fixed:.3f}, time per request {slope:.3f} of 200")
    assert min(fixed, slope) >= 0.90


def test_a_run_in_virtual_time_gives_its_own_service_time_back(scenario):
    more = {"shape": "normal", "mean_s": FIXED_S + PER_REQUEST_S, "per_item_s": PER_REQUEST_S, "workers": 2}
    points = [
        summarise(scenario(seed=users, users=users, batch=8, **more).run(), {"concurrency": users}).to_json()
        for users in (2, 4, 7, 11, 16)
    ]
    found = fit_batch_model(points, "occupied")
    assert found.fixed_s.low <= FIXED_S <= found.fixed_s.high
    assert found.per_request_s.low <= PER_REQUEST_S <= found.per_request_s.high
    assert found.sizes[-1] == 8


def test_small_batches_of_the_simulated_device_predict_the_throughput_of_larger_ones(point):
    preset = load_preset("bert-large")

    def rate_rps(size):
        return run_cell(preset, Cell(users=4 * size, workers=1, max_size=size), requests=400 * size).throughput_rps

    calls = [call(size, size / rate_rps(size)) for size in (1, 2, 4, 8)]
    found = fit_batch_model([with_calls(point, calls)], "occupied")
    error_ratio = found.max_rps(12) / rate_rps(12) - 1
    print(f"simulated: X_max(12) from batches of 1 to 8: {error_ratio:+.2%} off the simulated device's own throughput")
    assert abs(error_ratio) < 0.02


def simulate_without_a_window(rate_rps, fixed_s, per_request_s, requests):
    """Mean latency, with its interval, of Poisson arrivals before one server that always takes all that wait."""
    arrivals = np.cumsum(np.random.default_rng(2).exponential(1 / rate_rps, requests))
    latencies, first, free_s = np.empty(requests), 0, 0.0
    while first < requests:
        start = max(free_s, arrivals[first])
        last = max(first + 1, int(np.searchsorted(arrivals, start, side="right")))
        free_s = start + fixed_s + per_request_s * (last - first)
        latencies[first:last] = free_s - arrivals[first:last]
        first = last
    return mean_interval(block_means(latencies, block_edges([requests], 20)))


@pytest.mark.parametrize(("load", "requests"), [(0.3, 50_000), (0.6, 100_000), (0.9, 800_000)])
def test_inoues_bound_holds_and_is_close(line, load, requests):
    found = fit_batch_model(line(0.5, 0.25), "occupied")
    rate_rps = load / 0.25
    simulated = simulate_without_a_window(rate_rps, 0.5, 0.25, requests)
    bound = found.mean_latency_bound_s(rate_rps)
    print(f"simulated: load {load}: mean latency {simulated.low:.3f} to {simulated.high:.3f} s, bound {bound:.3f} s")
    assert simulated.low <= bound <= 1.1 * simulated.high


def test_a_planted_slower_server_breaks_inoues_bound(line):
    found = fit_batch_model(line(0.5, 0.25), "occupied")
    assert simulate_without_a_window(2.4, 0.5, 0.29, 50_000).low > found.mean_latency_bound_s(2.4)


def test_no_latency_is_promised_at_a_rate_that_cannot_be_served(line):
    found = fit_batch_model(line(0.5, 0.25), "occupied").mean_latency_bound_s(4.5)
    assert found == Refusal(
        reason="4.50 req/s is not below the 4.00 req/s that batches without limit can serve; the queue has no steady "
        "state"
    )


def test_nothing_is_said_beyond_one_and_a_half_times_the_largest_batch(line):
    found = fit_batch_model(line(), "occupied")
    assert isinstance(found.max_rps(12), float)
    assert found.max_rps(13).reason.startswith("a batch of 13 lies outside 1 to 12")


def reason(points, part="occupied"):
    found = fit_batch_model(points, part)
    assert isinstance(found, Refusal)
    return found.reason


def test_two_sizes_are_no_line(line):
    assert reason(line(sizes=(1, 8))).startswith("batch sizes seen in 5 calls or more: 1, 8;")


def test_a_rare_size_does_not_count(point):
    calls = [call(1, 0.01), call(2, 0.012), call(4, 0.5, batches=4)]
    assert "1, 2;" in reason([with_calls(point, calls)])


def test_a_step_is_no_line(point):
    steps = [call(size, 0.01 if size <= 4 else 0.02, 0.0001) for size in range(1, 9)]
    assert reason([with_calls(point, steps)]).startswith("calls of 5 took 34.6 % longer")


@pytest.mark.parametrize(
    ("change", "named"),
    [({"workers": 2}, "workers"), ({"batch": {"padding": "bucket"}}, "batch")],
)
def test_calls_of_two_servers_do_not_mix(point, change, named):
    calls = [call(size, 0.01 + 0.001 * size) for size in (1, 2, 4)]
    points = [with_calls(point, calls), with_calls(point, calls, **change)]
    assert reason(points).startswith(f"the points differ in {named}, and a call's time")
    other = with_calls(point, calls, batch={"max_size": 4, "max_delay_s": 0.1})
    assert isinstance(fit_batch_model([points[0], other], "occupied"), BatchModel)


def test_points_of_an_older_archive_have_no_calls(point):
    assert "none;" in reason([point(n, 10.0 * n) for n in (1, 2, 4)])
