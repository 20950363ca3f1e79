"""Is a setting that works against itself told, with what to try?"""

from __future__ import annotations

import pytest

from perfkit.serving.server.cautions import cautions
from perfkit.settings.queueing import BatchSettings
from perfkit.settings.server import ServerSettings
from perfkit.settings.workers import ConcurrencySettings, ElasticSettings


@pytest.mark.parametrize(
    ("settings", "is_told"),
    [
        (ServerSettings(workers=64), False),  # nothing is known of the best batch
        (ServerSettings(workers=2, batch=BatchSettings(max_size=8)), False),
        (ServerSettings(workers=3, batch=BatchSettings(max_size=8)), True),
        (ServerSettings(workers=4, batch=BatchSettings(max_size=8, best_size=16)), False),
        (ServerSettings(workers=5, batch=BatchSettings(max_size=8, best_size=16)), True),
        (
            ServerSettings(
                batch=BatchSettings(max_size=8),
                concurrency=ConcurrencySettings(model="elastic"),
                elastic=ElasticSettings(core=1, max=4),
            ),
            True,
        ),
    ],
)
def test_more_than_twice_the_best_batch_in_all_hands_is_told(settings, is_told):
    assert bool(cautions(settings)) == is_told


def test_the_line_says_what_is_too_much_and_what_to_try():
    settings = ServerSettings(workers=8, batch=BatchSettings(max_size=8, best_size=16))
    assert cautions(settings) == [
        "8 workers with up to 8 requests in hand are 64, more than 2 x 16 (batch.best_size): batches may leave part "
        "empty; try 4 workers, or a longer window, and measure"
    ]
