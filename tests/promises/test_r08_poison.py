"""R8: does a bad request fail alone, whatever is bad about it?

A batch whose call raises, or gives the wrong number of outputs, is split until the poison stands alone; a NaN fails
its own row. Target: over 10^4 batches with 0 to 3 poisons no mate fails, at most 2 ceil(log2 B) further calls of the
model per poison.
"""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from runner_bench import Bench, Model

from perfkit.records import EndState

TARGET = "0 mates failed, <= 2 ceil(log2 B) further calls per poison"
NAN = float("nan")


def most_extra_calls(size, poisons):
    return poisons * 2 * math.ceil(math.log2(size)) if size > 1 else 0


@st.composite
def poisoned_batches(draw):
    size = draw(st.integers(1, 64))
    places = draw(st.sets(st.integers(0, size - 1), max_size=3))
    return size, {place: draw(st.sampled_from(["raise", "drop"])) for place in places}


@given(poisoned_batches())
def test_poison_fails_alone_in_few_further_calls_wherever_it_stands(batch):
    size, poisons = batch
    check_isolation(Bench(Model()), size, poisons)


def check_isolation(bench, size, poisons):
    items = [poisons.get(place, place) for place in range(size)]
    calls = bench.runner._model.sizes if hasattr(bench.runner._model, "sizes") else None
    jobs, outputs = bench.run(items)
    assert outputs == [None if place in poisons else place for place in range(size)]
    assert [job.end_state for job in jobs] == [
        EndState.FAILED if place in poisons else EndState.OPEN for place in range(size)
    ]
    assert bench.books.batches.closed - 1 <= most_extra_calls(size, len(poisons)), calls


def many_batches(count):
    """Batches of random sizes with random poisons: how many there were, what failed, what it cost."""
    chance = random.Random(count)
    bench = Bench(Model(), checks_outputs=True)
    counts = {"batches": count, "poisons": 0, "mates": 0, "mates_failed": 0, "over_bound": 0, "unnoticed": 0}
    for _ in range(count):
        size = chance.randint(1, 64)
        places = chance.sample(range(size), min(size, chance.randint(0, 3)))
        poisons = {place: chance.choice(["raise", "drop", NAN]) for place in places}
        before = bench.books.batches.closed
        jobs, outputs = bench.run([poisons.get(place, float(place)) for place in range(size)])
        extra = bench.books.batches.closed - before - 1
        hard = sum(1 for poison in poisons.values() if poison is not NAN)
        mates = [place for place in range(size) if place not in poisons]
        counts["poisons"] += len(poisons)
        counts["mates"] += len(mates)
        counts["mates_failed"] += sum(outputs[place] != float(place) for place in mates)
        counts["over_bound"] += extra > most_extra_calls(size, hard)
        counts["unnoticed"] += sum(jobs[place].end_state is not EndState.FAILED for place in poisons)
    return counts


def check(counts, told):
    told("R8", TARGET, **counts)
    assert (counts["mates_failed"], counts["over_bound"], counts["unnoticed"]) == (0, 0, 0)


def test_three_hundred_batches_with_poison_leave_every_mate_unharmed(told):
    check(many_batches(300), told)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_ten_thousand_batches_with_poison_leave_every_mate_unharmed(told):
    check(many_batches(10_000), told)


def test_the_count_notices_a_runner_that_fails_whole_batches(monkeypatch):
    """The control of the tests above: nobody is split off, so that mates fail."""
    monkeypatch.setattr("perfkit.serving.server.batch_run.BatchRunner._run_in_parts", lambda *_: [])
    assert many_batches(30)["mates_failed"] > 0


def test_a_nan_fails_its_own_request_and_costs_no_further_call():
    bench = Bench(Model(), checks_outputs=True)
    jobs, outputs = bench.run([1.0, NAN, [2.0, NAN], 3.0])
    assert outputs == [1.0, None, None, 3.0]
    assert [(job.end_state, job.code) for job in jobs[1:3]] == [(EndState.FAILED, "nan_output")] * 2
    assert bench.books.batches.closed == 1


def test_outputs_are_not_looked_at_unless_asked():
    _, outputs = Bench(Model()).run([NAN])
    assert math.isnan(outputs[0])
