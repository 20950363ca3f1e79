"""Do the two ways of judging a run differ as they do in trials, and is a miss called a miss?"""

import pytest

from perfkit.explaining.twin.coverage import INDEPENDENT, PERFKIT, Trial, coverage_table, trial_table
from perfkit.explaining.twin.single_server import SingleServer

QUEUE = SingleServer(load_ratio=0.8, service_s=0.01)


@pytest.fixture(scope="module")
def trials():
    return trial_table([Trial(queue=QUEUE, seconds=seconds, runs=60, seed=3) for seconds in (30, 900)])


def test_an_interval_holds_the_truth_when_it_lies_between_its_ends(trials):
    truth_s = QUEUE.quantile_s(0.99)
    low, high = trials["low_s"].fillna(0.0), trials["high_s"].fillna(float("inf"))
    assert set(trials["truth_s"]) == {truth_s}
    assert trials["holds"].tolist() == ((low <= truth_s) & (truth_s <= high)).tolist()


def test_independence_is_an_illusion_and_time_cures_the_other_way_of_judging(trials):
    found = coverage_table(trials).set_index(["seconds", "method"])
    assert found.loc[(900, INDEPENDENT), "holds_ratio"] < 0.5
    assert found.loc[(900, PERFKIT), "holds_ratio"] >= 0.85
    assert found.loc[(30, PERFKIT), "open_ratio"] > 0.5 > found.loc[(900, PERFKIT), "open_ratio"]
    assert found["runs"].tolist() == [60] * 4


def test_the_length_is_told_in_relaxation_times(trials):
    times = {seconds: part["times"].iloc[0] for seconds, part in trials.groupby("seconds")}
    assert times == {30: pytest.approx(33.4, abs=0.1), 900: pytest.approx(1003, abs=1)}
