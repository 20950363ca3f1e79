"""How deep may a queue be for a tolerated wait?"""

from __future__ import annotations

import math

import pytest

from perfkit.errors import ConfigError
from perfkit.serving.scheduling.depth import queue_depth


@pytest.mark.parametrize(
    ("rate_rps", "tolerated_wait_s", "depth"),
    [(200, 0.1, 20), (300, 0.15, 45), (10, 0.05, 1), (333, 0.1, 33), (100, 0.29, 29)],
)
def test_the_depth_is_rate_times_tolerated_wait(rate_rps, tolerated_wait_s, depth):
    assert queue_depth(rate_rps, tolerated_wait_s) == depth


@pytest.mark.parametrize(("rate_rps", "tolerated_wait_s"), [(0, 1), (-1, 1), (math.nan, 1), (1, math.inf)])
def test_what_is_no_rate_or_wait_is_refused(rate_rps, tolerated_wait_s):
    with pytest.raises(ConfigError, match="it takes a number above 0"):
        queue_depth(rate_rps, tolerated_wait_s)
