"""Scans of the simulated device in virtual time: do fits find what the device is, and do they predict it?"""

import functools

import numpy as np
import pytest

from perfkit.explaining.twin.closed_loop import Cell, run_cell
from perfkit.measuring.analysis.scaling.curve import curve_of
from perfkit.measuring.analysis.scaling.fits import fit_scaling
from perfkit.measuring.analysis.scaling.refusal import Refusal
from perfkit.measuring.analysis.scaling.usl import fit_usl
from perfkit.serving.devices.simulated.preset import load_preset

USERS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
LAW_USERS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96)


@functools.cache
def rate_rps(preset, users, workers):
    return run_cell(load_preset(preset), Cell(users=users, workers=workers, max_size=1), requests=1500).throughput_rps


@pytest.mark.parametrize("workers", [2, 4])
def test_a_pool_that_fills_up_has_bounds_and_a_knee_at_its_size_and_no_usl(curve, workers):
    rates = {users: rate_rps("s001-pool", users, workers) for users in USERS}
    found = fit_scaling(curve(rates))
    assert found.usl.reason.startswith("residual pattern")
    assert found.bounds.crossing.low <= workers <= found.bounds.crossing.high
    assert found.knee["low"] <= workers <= found.knee["high"]
    assert found.knee["high"] - found.knee["low"] < 0.1 * workers


def test_threads_before_one_lock_cross_their_bounds_before_all_of_them_work(curve):
    rates = {users: rate_rps("s003-threads", users, 4) for users in USERS}
    found = fit_scaling(curve(rates))
    assert isinstance(found.usl, Refusal)
    assert 3 < found.bounds.crossing.value < 4  # the lock takes part of the fourth worker's gain
    assert str(found).startswith("Simulated. ")


def held_out_errors(rates, curve):
    """Signed relative errors at the values that the fit over every other one did not see."""
    users = sorted(rates)
    fit = fit_usl(curve_of(curve({value: rates[value] for value in users[::2]}, half=0.02)))
    assert not isinstance(fit, Refusal), fit
    return {value: fit.throughput(value).value / rates[value] - 1 for value in users[1::2]}


@pytest.mark.parametrize("truth", [(100.0, 0.05, 0.0005), (1000.0, 0.02, 0.0002)])
def test_a_fit_of_half_of_the_values_predicts_the_others(curve, law, truth):
    rng = np.random.default_rng(4)
    rates = {users: law(users, *truth) * (1 + 0.01 * rng.normal()) for users in LAW_USERS}
    errors = held_out_errors(rates, curve)
    worst = max(map(abs, errors.values()))
    print(f"simulated (law with 1 % noise): {len(errors)} values predicted from the others, worst error {worst:.2%}")
    assert worst < 0.05


def test_the_prediction_check_can_fail(curve):
    rates = {users: 100.0 * users / (1 + 0.05 * (users - 1)) for users in LAW_USERS}
    rates[8] *= 0.7  # a held-out point that follows another law
    assert max(map(abs, held_out_errors(rates, curve).values())) > 0.2
