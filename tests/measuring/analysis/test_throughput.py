"""Rates and their intervals."""

import numpy as np
import pytest

from perfkit.measuring.analysis.measured import measure_windows
from perfkit.measuring.analysis.throughput import slice_rates, throughput
from perfkit.measuring.analysis.warmup import Window


def window(start_s, end_s):
    return Window(round=0, start_ns=start_s * 1e9, end_ns=end_s * 1e9, warmup_s=0.0, warmup_ended=True)


def test_slices_count_the_replies_of_their_span():
    replies = np.array([0.1, 0.2, 0.3, 1.5]) * 1e9
    assert list(slice_rates([window(0, 2)], [replies], 4)) == [6.0, 0.0, 0.0, 2.0]


@pytest.mark.parametrize(
    ("changes", "truth_rps"),
    [
        ({"shape": "normal"}, 100.0),
        ({"shape": "normal", "users": 32, "batch": 16, "per_item_s": 0.004}, 16 / 0.07),
        ({"shape": "normal", "rate_rps": 60.0, "seconds": 10.0}, 60.0),
    ],
)
def test_the_interval_covers_the_true_rate(scenario, changes, truth_rps):
    hits = []
    for seed in range(15):
        run = scenario(seed=seed, **changes).run()
        found = throughput(measure_windows(run), run.think_s, run.is_closed_loop)
        hits.append(found.low <= truth_rps * 1.002 and found.high >= truth_rps * 0.998)
    assert np.mean(hits) >= 0.8


def test_whole_batches_do_not_count_as_noise(scenario):
    run = scenario(seed=1, shape="constant", users=32, batch=16, per_item_s=0.004).run()
    found = throughput(measure_windows(run), 0.0, closed=True)
    assert found.value == pytest.approx(16 / 0.07, rel=1e-3)
    assert found.high / found.low < 1.01
