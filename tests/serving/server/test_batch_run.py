"""Does a bad request fail alone, whatever is bad about it, and does a batch that does not fit find its size?"""

from __future__ import annotations

import math
import random
import weakref
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfkit.clock import ManualClock
from perfkit.records import EndState
from perfkit.serving.devices.cpu import CpuDevice
from perfkit.serving.devices.device import DeviceLost, OutOfDeviceMemory
from perfkit.serving.devices.simulated.device import SimulatedDevice
from perfkit.serving.instrument.cpulap import CpuLap
from perfkit.serving.server.adapter import complete
from perfkit.serving.server.batch_run import BatchRunner
from perfkit.serving.server.dispatcher import Taken
from perfkit.serving.server.job import Job
from perfkit.serving.server.pipeline import Books
from perfkit.serving.server.room import Room
from perfkit.settings import LedgerSettings

TAKEN = Taken([], 1, 1, 1)
NAN = float("nan")


class Model:
    """Answers what it is asked, unless the batch holds poison; counts its calls."""

    def __init__(self, fits=1 << 20):
        self.fits = fits
        self.sizes = []

    def predict(self, inputs):
        self.sizes.append(len(inputs))
        if len(inputs) > self.fits:
            raise OutOfDeviceMemory(f"{len(inputs)} do not fit")
        if "raise" in inputs:
            raise ValueError("poison")
        return [item for item in inputs if item != "drop"]


class Bench:
    """A runner on the test's own thread."""

    def __init__(self, model, *, most=64, checks_outputs=False, device=None):
        self.clock = ManualClock(start_ns=1)
        self.books = Books(LedgerSettings(capacity=1 << 14))
        self.room = Room(most, self.clock)
        tools = SimpleNamespace(
            model=complete(model),
            requests=self.books.requests,
            batches=self.books.batches,
            batch_ids=self.books.batch_ids,
            room=self.room,
            checks_outputs=checks_outputs,
        )
        self.lane = (device or CpuDevice()).open_lane("model-0")
        self.runner = BatchRunner(tools, self.lane)

    def run(self, items):
        """The jobs of one batch, and what came back for each: its output, or None when it ended with an error."""
        requests = self.books.requests
        jobs = [Job(item, receiver=None, row=requests.open(), deadline_ns=0) for item in items]
        for job in jobs:
            job.item = job.payload
        answered = {id(job): output for job, output in self.runner.run(jobs, TAKEN, CpuLap(requests.cpu_ns))}
        for job in jobs:
            requests.close(job.row)
        return jobs, [answered.get(id(job)) for job in jobs]


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
    chance = random.Random(count)
    bench = Bench(Model(), checks_outputs=True)
    for _ in range(count):
        size = chance.randint(1, 64)
        places = chance.sample(range(size), min(size, chance.randint(0, 3)))
        poisons = {place: chance.choice(["raise", "drop", NAN]) for place in places}
        before = bench.books.batches.closed
        jobs, outputs = bench.run([poisons.get(place, float(place)) for place in range(size)])
        hard = sum(1 for poison in poisons.values() if poison is not NAN)
        assert bench.books.batches.closed - before - 1 <= most_extra_calls(size, hard)
        mates = [place for place in range(size) if place not in poisons]
        assert [outputs[place] for place in mates] == [float(place) for place in mates], "no mate fails"
        assert {jobs[place].end_state for place in poisons} <= {EndState.FAILED}


def test_three_hundred_batches_with_poison_leave_every_mate_unharmed():
    many_batches(300)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_ten_thousand_batches_with_poison_leave_every_mate_unharmed():
    many_batches(10_000)


def test_a_nan_fails_its_own_request_and_costs_no_further_call():
    bench = Bench(Model(), checks_outputs=True)
    jobs, outputs = bench.run([1.0, NAN, [2.0, NAN], 3.0])
    assert outputs == [1.0, None, None, 3.0]
    assert [(job.end_state, job.code) for job in jobs[1:3]] == [(EndState.FAILED, "nan_output")] * 2
    assert bench.books.batches.closed == 1


def test_outputs_are_not_looked_at_unless_asked():
    _, outputs = Bench(Model()).run([NAN])
    assert math.isnan(outputs[0])


@given(size=st.integers(1, 64), fits=st.integers(1, 64))
def test_a_batch_that_does_not_fit_is_answered_in_parts_that_do(size, fits):
    model = Model(fits)
    bench = Bench(model)
    _, outputs = bench.run(list(range(size)))
    assert outputs == list(range(size))
    assert sum(1 for called in model.sizes if called > fits) <= 10
    assert (bench.room.most_at_once == 64) == (size <= fits)


def test_one_request_that_does_not_fit_alone_fails_with_what_to_do():
    bench = Bench(Model(fits=0))
    jobs, outputs = bench.run([1, 2])
    assert outputs == [None, None]
    assert {(job.end_state, job.code) for job in jobs} == {(EndState.FAILED, "out_of_device_memory")}
    message = "this request alone does not fit the device's memory: 1 do not fit; send a smaller input"
    assert {job.message for job in jobs} == {message}
    assert bench.room.most_at_once == 1


def test_when_memory_is_there_again_the_batches_grow_back():
    model = Model(fits=3)
    bench = Bench(model)
    bench.run(list(range(64)))
    assert bench.room.most_at_once == 2
    model.fits = 64
    for _ in range(20):
        bench.clock.advance(20_000_000_000)
        bench.run(list(range(64)))
    assert (bench.room.most_at_once, bench.room.is_settled, model.sizes[-1]) == (64, True, 64)


def starve(count):
    """A simulated device whose memory comes and goes, until so many calls have failed for want of it."""
    chance, model = random.Random(count), Model()
    bench = Bench(model, device=SimulatedDevice())
    failed = batches = 0
    while failed < count:
        model.fits = chance.randint(1, 80)
        bench.clock.advance(chance.randint(0, 30) * 1_000_000_000)
        done = len(model.sizes)
        for _ in range(3):
            size = chance.randint(1, 64)
            assert bench.run(list(range(size)))[1] == list(range(size)), "nobody fails"
            assert 1 <= bench.room.most_at_once <= 64
        lacking = [size for size in model.sizes[done:] if size > model.fits]
        assert len(lacking) <= 10, "the cap converges within ten calls"
        failed, batches = failed + len(lacking), batches + 3
    return failed, batches


def test_fifty_calls_without_memory_lose_no_request():
    starve(50)


@pytest.mark.slow
def test_five_hundred_calls_without_memory_lose_no_request():
    starve(500)


class Tensor:
    """Stands for memory of the device: gone when nobody refers to it."""


@pytest.mark.parametrize("behind", [None, "cause", "context"])
def test_the_memory_of_a_failed_call_is_free_before_the_next_try(behind):
    alive, seen = weakref.WeakSet(), []

    class Hungry:
        def predict(self, inputs):
            seen.append(len(alive))
            held = Tensor()
            alive.add(held)
            if len(inputs) == 1:
                return inputs
            try:
                raise ValueError("the allocator's own error")
            except ValueError as error:
                if behind == "context":
                    raise OutOfDeviceMemory("too large")  # noqa: B904
                raise OutOfDeviceMemory("too large") from (error if behind == "cause" else None)

    _, outputs = Bench(Hungry()).run([1, 2, 3, 4])
    assert (outputs, set(seen)) == ([1, 2, 3, 4], {0})


@pytest.mark.parametrize("error", [DeviceLost("the card has fallen off the bus"), None])
def test_what_the_device_raises_is_nobodys_fault_and_is_tried_only_once(error):
    model = Model()
    if error is not None:  # a library tells a lost device from inside the model's call
        model.predict = lambda inputs: raising(error)
    device = CpuDevice()
    bench = Bench(model, device=device)
    if error is None:
        error = KeyError("a bug in the device's code")
        device.synchronize = lambda event: raising(error)
    with pytest.raises(type(error)):
        bench.run([1, 2, 3, 4])
    assert bench.books.batches.closed == 1


def raising(error):
    raise error
