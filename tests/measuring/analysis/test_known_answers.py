"""Do the intervals of P99 hold what they promise where the answer is known? M/M/1 and M/D/1 in virtual time.

Each run starts empty, loses its warm-up as a measured run does (MSER-5), and is judged by the same `quantile` as a
measured run. The full size (`slow`) prints the figures: 400 runs a load at 1,000 relaxation times, 300 beside it.
"""

import decimal
import math

import numpy as np
import pytest

from perfkit.measuring.analysis.latency import at_probability, quantile
from perfkit.measuring.analysis.precision import settled
from perfkit.measuring.analysis.relaxation import CLAIMED_TIMES, LEAST_TIMES, Capacity, relaxation_s

P = 0.99
LEAST_COVERED = 0.90
MOST_UNBOUNDED = 0.10
QUEUES = ("M/M/1", "M/D/1")


def sojourn_times(rng, queue, load, count):
    """Latencies of a queue that starts empty, in mean service times: Lindley's recursion in closed form, vectorised."""
    gaps = rng.exponential(1 / load, count)
    service = rng.exponential(1.0, count) if queue == "M/M/1" else np.ones(count)
    steps = np.cumsum(np.concatenate([[0.0], service[:-1] - gaps[1:]]))
    return steps - np.minimum(np.minimum.accumulate(steps), 0.0) + service


def wait_share_md1(load, wait):
    """P(W <= wait) of M/D/1 with service 1 (Erlang 1909). The terms alternate and cancel, hence the digits."""
    with decimal.localcontext() as context:
        context.prec = 120
        rho, at = decimal.Decimal(load), decimal.Decimal(wait)
        terms = ((-rho * (at - k)) ** k / math.factorial(k) * (rho * (at - k)).exp() for k in range(int(wait) + 1))
        return float((1 - rho) * sum(terms, decimal.Decimal(0)))


def true_quantile(queue, load, p=P):
    """Of the sojourn time, in mean service times: exponential for M/M/1, Erlang's series for M/D/1."""
    if queue == "M/M/1":
        return -math.log(1 - p) / (1 - load)
    low, high = 0.0, 10.0 / (1 - load)
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if wait_share_md1(load, middle) < p else (low, middle)
    return low + 1.0


def by_blocks(latencies):
    found = quantile(latencies, [len(latencies)], P, 1.0)
    return found.low, found.high


def as_if_independent(latencies):
    """The planted violation: the textbook's binomial interval, which takes each request for one of its own."""
    ordered, half = np.sort(latencies), 1.96 * (P * (1 - P) / len(latencies)) ** 0.5
    return at_probability(ordered, P - half), at_probability(ordered, P + half)


def coverage(queue, load, times, runs, interval=by_blocks, seed=11):
    """Share of intervals that hold the true P99, and share without an upper end."""
    rng = np.random.default_rng(seed)
    count = int(times * relaxation_s(load, Capacity(max_rps=1.0, call_s=1.0)) * load)
    truth = true_quantile(queue, load)
    found = [interval(settled(sojourn_times(rng, queue, load, count), 0)) for _ in range(runs)]
    hits = [(low or 0.0) <= truth <= (high or math.inf) for low, high in found]
    return float(np.mean(hits)), float(np.mean([high is None for _, high in found]))


@pytest.mark.parametrize("queue", QUEUES)
@pytest.mark.parametrize("load", [0.5, 0.8])
def test_the_known_quantile_is_the_one_of_a_long_run(queue, load):
    latencies = sojourn_times(np.random.default_rng(5), queue, load, 2_000_000)
    assert true_quantile(queue, load) == pytest.approx(np.quantile(latencies, P), rel=0.04)


def test_erlangs_series_agrees_with_the_mean_wait_of_pollaczek_and_khinchine():
    waits = np.arange(0.0, 40.0, 0.05) + 1e-6  # 0 to the power of 0 has no decimal
    beyond = [1 - wait_share_md1(0.8, wait) for wait in waits]
    assert np.trapezoid(beyond, waits) == pytest.approx(0.8 / (2 * (1 - 0.8)), rel=0.01)


@pytest.mark.parametrize("queue", QUEUES)
def test_the_interval_holds_the_known_answer_at_a_thousand_relaxation_times(queue):
    covered, unbounded = coverage(queue, 0.5, CLAIMED_TIMES, runs=150)
    assert covered >= LEAST_COVERED - 0.03  # a standard error of 150 runs is .02
    assert unbounded <= MOST_UNBOUNDED + 0.04


def test_an_interval_that_takes_requests_for_independent_does_not():
    covered, _ = coverage("M/M/1", 0.8, CLAIMED_TIMES, runs=60, interval=as_if_independent)
    assert covered < 0.5


@pytest.mark.slow
@pytest.mark.parametrize("queue", QUEUES)
@pytest.mark.parametrize("load", [0.5, 0.8, 0.9])
def test_coverage_at_full_size(queue, load):
    covered, unbounded = coverage(queue, load, CLAIMED_TIMES, runs=400)
    beside, beside_unbounded = coverage(queue, load, LEAST_TIMES, runs=400)
    print(
        f"\n{queue} load {load}, 400 runs: 1,000 relaxation times {covered:.3f} ({unbounded:.3f} no upper bound);",
        end="",
    )
    print(f" 300: {beside:.3f} ({beside_unbounded:.3f} no upper bound)", end="")
    assert covered >= LEAST_COVERED
    assert unbounded <= MOST_UNBOUNDED
