"""Does the queue in virtual time give what the theory of M/M/1 says, and does it start as it should?"""

import numpy
import pytest

from perfkit.errors import ConfigError
from perfkit.explaining.twin.single_server import SingleServer

QUEUE = SingleServer(load_ratio=0.5, service_s=0.01)


def test_its_figures_are_those_of_the_theory():
    assert (QUEUE.rate_rps, QUEUE.mean_s, QUEUE.requests_in(60)) == (50, 0.02, 3000)
    assert QUEUE.quantile_s(0.99) == pytest.approx(0.0921, abs=1e-4)
    assert QUEUE.relaxation_s == pytest.approx(0.1166, abs=1e-4)


def test_a_steady_queue_is_steady_from_the_first_request_on():
    latency_s = QUEUE.latencies(50, seed=1, runs=40_000)
    for at in (0, 1, 49):
        assert latency_s[:, at].mean() == pytest.approx(QUEUE.mean_s, rel=0.03)
        assert numpy.quantile(latency_s[:, at], 0.99) == pytest.approx(QUEUE.quantile_s(0.99), rel=0.04)


def test_a_queue_that_starts_empty_serves_its_first_request_at_once_and_is_steady_later():
    latency_s = QUEUE.latencies(200, seed=1, runs=20_000, from_empty=True)
    assert latency_s[:, 0].mean() == pytest.approx(QUEUE.service_s, rel=0.03)
    assert latency_s[:, -1].mean() == pytest.approx(QUEUE.mean_s, rel=0.03)


def test_nobody_overtakes_and_nobody_waits_for_an_idle_server():
    """The recursion itself, request by request, on the same draws."""
    chance = numpy.random.default_rng(7)
    service, gap = chance.exponential(0.01, 500), chance.exponential(0.02, 500)
    waited = 0.0
    expected = [service[0]]
    for at in range(1, 500):
        waited = max(0.0, waited + service[at - 1] - gap[at])
        expected.append(waited + service[at])
    assert QUEUE.latencies(500, seed=7, from_empty=True)[0] == pytest.approx(expected)


@pytest.mark.parametrize("load_ratio", [0, 1, 1.2, -0.5])
def test_a_load_without_a_steady_state_is_refused(load_ratio):
    with pytest.raises(ConfigError, match="the first lies between 0 and 1"):
        SingleServer(load_ratio=load_ratio)
