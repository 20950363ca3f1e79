"""Drawn service times have the mean and the scatter that were asked for."""

import statistics

import pytest

from perfkit.serving.devices.simulated.service import ServiceTimes


@pytest.mark.parametrize("cv", [0.2, 0.5, 1.0, 2.0])
def test_many_draws_have_the_mean_and_the_coefficient_of_variation(cv):
    times = ServiceTimes(seed=3)
    drawn = [times.draw_ns(1e6, cv) for _ in range(50_000)]
    mean = statistics.fmean(drawn)
    assert mean == pytest.approx(1e6, rel=0.03)
    assert statistics.pstdev(drawn) / mean == pytest.approx(cv, rel=0.05)


def test_without_scatter_the_mean_itself_is_drawn():
    assert [ServiceTimes(seed=3).draw_ns(mean, 0.0) for mean in (0.0, 12.0)] == [0, 12]


def test_the_same_seed_draws_the_same_times():
    first, second, other = ([ServiceTimes(seed).draw_ns(1e6, 0.5)] for seed in (1, 1, 2))
    assert first == second != other
