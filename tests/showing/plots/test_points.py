"""Do points say how they were loaded, as far as they have it in common?"""

import pytest

from perfkit.showing.plots.points import loop_text

EIGHT, FOUR = ({"loop": "closed", "concurrency": users} for users in (8, 4))
SLOW, FAST = ({"loop": "open", "rate_rps": rate} for rate in (20.0, 40.0))


@pytest.mark.parametrize(
    ("loads", "text"),
    [
        ([EIGHT, EIGHT], "closed loop, 8 users"),
        ([EIGHT, FOUR], "closed loop"),
        ([SLOW], "open loop, 20.0 req/s"),
        ([SLOW, FAST], "open loop"),
        ([SLOW | {"arrivals": "replay"}], "open loop, replayed schedule"),
        ([EIGHT | {"profile": "ramp"}], "closed loop, ramp"),
        ([{}], ""),
        ([], ""),
    ],
)
def test_the_load_is_told_as_far_as_the_points_share_it(loads, text):
    assert loop_text([{"load": load} for load in loads]) == text
