"""What do ten real comparisons say of MiniLM: five of a setting with itself, five of batches with none?"""

import pytest

from perfkit.measuring.comparing.interleaving import run_comparison
from perfkit.measuring.comparing.plan import ComparisonPlan, Side
from perfkit.measuring.load.loops import ClosedLoop
from perfkit.serving.server.defaults import settings_for

LOAD = ClosedLoop(concurrency=8)
CHANGES = ({}, {"batch.max_size": 8})
PAIRS, SECONDS = 8, 2.0


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_minilm_against_itself_seldom_alarms_and_what_batches_do_is_printed(tmp_path):
    verdicts = {0: [], 1: []}
    for number in range(10):
        kind = number % 2
        a, b = (
            Side(label=str(changes or "default"), settings=settings_for("minilm", changes), load=LOAD)
            for changes in (CHANGES[0], CHANGES[kind])
        )
        plan = ComparisonPlan(a=a, b=b, pairs=PAIRS, seconds=SECONDS, seed=number)
        found = run_comparison(plan, tmp_path / str(number))
        print(f"\n{found}")
        verdicts[kind].append(found.verdict)
    print(f"\nagainst itself: {verdicts[0]}\nbatches: {verdicts[1]}")
    assert sum(verdict in ("faster", "slower", "mixed") for verdict in verdicts[0]) <= 1
