"""Does the fit give back the numbers that the cells were made from, and say how sure it is?"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from perfkit.errors import TargetFailed
from perfkit.explaining.twin.fit import fit, fit_line
from perfkit.explaining.twin.observed import Calls, Observed

ALPHA_S, BETA_S, CORUN_RATIO = 0.002, 0.0005, 0.3
CALL_S, REQUEST_S = 0.0004, 0.00005


def calls(size, count=60, rounds=3, growth=1.0, noise=0.0):
    """Calls of one size, dealt out over rounds, with relative noise."""
    chance = np.random.default_rng(size)
    compute_s = (ALPHA_S + BETA_S * size) * growth * (1 + noise * chance.standard_normal(count))
    ones = np.ones(count)
    return Calls(
        rounds=np.arange(count) % rounds * 1.0,
        sizes=size * ones,
        compute_s=compute_s,
        h2d_s=0.0001 * size * ones,
        d2h_s=0.0 * ones,
        cpu_s=compute_s,
        around_s=(0.0003 + 0.00002 * size) * ones,
    )


def cell(workers, size, **how):
    """A cell whose host work is CALL_S a call and REQUEST_S a request."""
    return Observed(
        workers=workers,
        max_size=size,
        has_copies=False,
        calls=calls(size, **how),
        preprocess_cpu_s=REQUEST_S,
        postprocess_cpu_s=REQUEST_S / 2,
        server_cpu_s=CALL_S / size + REQUEST_S,
        preprocess_wait_s=0.001 * size,
        postprocess_wait_s=0.0,
        pause_s=0.0001 * size,
    )


def test_exact_cells_give_the_exact_numbers_back():
    found = fit([cell(1, 1), cell(1, 4), cell(1, 16), cell(2, 1, growth=1 + CORUN_RATIO)], slots=2)
    numbers = (found.alpha_s.value, found.beta_s.value, found.corun_ratio.value, found.residual_ratio)
    assert numbers == pytest.approx((ALPHA_S, BETA_S, CORUN_RATIO, 0.0), abs=1e-9)
    assert [(one.size, one.calls) for one in found.sizes] == [(1, 60), (4, 60), (16, 60)]
    host = dataclasses.asdict(found.host)
    assert host == pytest.approx(
        {
            "preprocess_serial_s": REQUEST_S + 0.00002,
            "preprocess_parallel_s": 0.001,
            "call_serial_s": 0.0003 + CALL_S,
            "call_parallel_s": 0.0,
            "postprocess_serial_s": REQUEST_S / 2,
            "postprocess_parallel_s": 0.0,
            "server_serial_s": REQUEST_S,
            "pause_s": 0.0001,
        },
        abs=1e-12,
    )
    assert (found.h2d_s, found.d2h_s) == pytest.approx((0.0001, 0.0))


def test_noise_widens_the_interval_which_still_holds_the_truth():
    exact = fit([cell(1, 1), cell(1, 16)], slots=2)
    noisy = fit([cell(1, size, noise=0.2, rounds=6, count=600) for size in (1, 4, 16)], slots=2)
    assert exact.beta_s.high - exact.beta_s.low < 1e-12
    assert noisy.beta_s.low < BETA_S < noisy.beta_s.high
    assert noisy.alpha_s.low < ALPHA_S < noisy.alpha_s.high


def test_a_curve_that_is_no_line_shows_as_a_residual():
    bent = cell(1, 4)
    bent = dataclasses.replace(bent, calls=dataclasses.replace(bent.calls, compute_s=bent.calls.compute_s * 1.5))
    assert fit([cell(1, 1), bent, cell(1, 16)], slots=2).residual_ratio > 0.1


def test_one_round_gives_numbers_without_an_interval():
    found = fit([cell(1, 1, rounds=1), cell(1, 16, rounds=1)], slots=2)
    assert (found.alpha_s.low, found.alpha_s.high, found.corun_ratio.low) == (None, None, None)


def test_neither_part_of_a_call_is_ever_below_zero():
    assert fit_line([(1.0, 0.001, 10), (16.0, 0.0001, 10)])[1] == 0.0
    assert fit_line([(1.0, 0.001, 10), (2.0, 0.004, 10)])[0] == 0.0


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([cell(2, 1)], "no call of one worker alone was measured; measure for longer"),
        ([cell(1, 1), cell(1, 16, count=4)], "the calls have 1 sizes that were seen 5 times or more"),
    ],
)
def test_too_little_to_fit_is_told_with_what_to_do(cells, message):
    with pytest.raises(TargetFailed, match=message):
        fit(cells, slots=2)


def test_behind_copies_a_calls_thread_only_launches_and_the_rest_is_a_wait():
    launching = dataclasses.replace(cell(1, 1), has_copies=True)
    launching = dataclasses.replace(
        launching, calls=dataclasses.replace(launching.calls, cpu_s=np.full(60, 0.0001), around_s=np.full(60, 0.0005))
    )
    large = dataclasses.replace(cell(1, 16), has_copies=True)
    large = dataclasses.replace(large, calls=dataclasses.replace(large.calls, cpu_s=np.full(60, 0.0001)))
    host = fit([launching, large], slots=1).host
    assert (host.call_serial_s, host.call_parallel_s) == pytest.approx((0.0001 + CALL_S, 0.0004))
