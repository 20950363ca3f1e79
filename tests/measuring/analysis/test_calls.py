"""How long calls keep their workers, by batch size."""

import dataclasses

import numpy as np
import pytest

from perfkit.measuring.analysis.calls import call_times, occupation, workers_busy_ratio
from perfkit.measuring.analysis.measured import measure_windows


def test_calls_come_by_size_with_mean_and_spread(scenario):
    run = scenario(seed=1, shape="constant", batch=4, mean_s=0.01, per_item_s=0.002, users=6).run()
    found = {one.size: one for one in call_times(occupation(run), measure_windows(run))}
    assert sum(one.batches for one in found.values()) == pytest.approx(len(run.batches), rel=0.15)
    assert found[4].occupied_s == pytest.approx(0.016, rel=0.01)
    assert found[4].occupied_sd_s < 1e-6
    assert found[4].compute_s < found[4].occupied_s


def test_workers_that_never_rest_are_busy_all_the_time(scenario):
    full, light = (scenario(seed=1, shape="constant", users=users, workers=2).run() for users in (8, 1))
    assert workers_busy_ratio(occupation(full), measure_windows(full)) == pytest.approx(1.0, abs=0.02)
    assert workers_busy_ratio(occupation(light), measure_windows(light)) < 0.6


def test_a_worker_has_its_batch_from_taking_it_with_inline_preprocess(scenario):
    run = scenario(seed=1, shape="constant", users=4).run()
    taken = run.batches["batch_sealed_ns"] - 3_000
    early = dataclasses.replace(run, batches=run.batches.assign(taken_ns=taken))
    assert np.median(occupation(early).seconds - occupation(run).seconds) == pytest.approx(3e-6)


def test_a_second_part_of_a_batch_counts_from_its_own_seal(scenario):
    run = scenario(seed=1, shape="constant", users=4, rounds=1).run()
    split = run.batches.assign(taken_ns=run.batches["batch_sealed_ns"].iloc[0])
    parts = dataclasses.replace(run, batches=split)
    assert occupation(parts).seconds[1:] == pytest.approx(occupation(run).seconds[1:])


def test_a_service_without_batches_has_no_calls(scenario):
    run = scenario(seed=1).run()
    foreign = dataclasses.replace(run, batches=run.batches.iloc[:0])
    measured, found = measure_windows(foreign), occupation(foreign)
    assert (found, call_times(found, measured), workers_busy_ratio(found, measured)) == (None, (), None)
