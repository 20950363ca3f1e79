"""The card's view: how much of a window had a kernel."""

import pytest

from perfkit.serving.devices.simulated.view import WINDOW_NS, covered_ratio, utilisation_ratio


@pytest.mark.parametrize(
    ("intervals", "ratio"),
    [
        ([], 0.0),
        ([(0, 200)], 1.0),
        ([(90, 110), (150, 160)], 0.2),  # cut at the window's start
        ([(190, 300)], 0.1),  # a kernel that still runs counts up to now
        ([(0, 50), (250, 300)], 0.0),
    ],
)
def test_covered_ratio_is_the_share_of_the_window(intervals, ratio):
    assert covered_ratio(intervals, 100, 200) == pytest.approx(ratio)


def test_utilisation_looks_back_one_sixth_of_a_second():
    now_ns = 10 * WINDOW_NS
    assert utilisation_ratio([(now_ns - 2 * WINDOW_NS, now_ns - WINDOW_NS // 2)], now_ns) == pytest.approx(0.5)
