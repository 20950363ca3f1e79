"""R11: does a batch that does not fit the device's memory find its size, and nobody fail for it?

Target: over 500 calls that run out of memory the process never ends, no request fails, and the cap on the batch size
converges within 10 batches. The device and its memory are simulated.
"""

from __future__ import annotations

import random
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st
from runner_bench import Bench, Model

from perfkit.clock import RealClock
from perfkit.records import EndState
from perfkit.serving.devices.device import OutOfDeviceMemory
from perfkit.serving.devices.simulated.device import SimulatedDevice
from perfkit.serving.devices.simulated.preset import load_preset

TARGET = "0 exits, 0 failed, the cap converges within 10 batches"


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


class LeapClock(RealClock):
    """Whoever sleeps arrives at once."""

    def __init__(self):
        self.at_ns = 1

    def now_ns(self):
        return self.at_ns

    def sleep_until(self, until_ns):
        self.at_ns = max(self.at_ns, until_ns)


def test_a_card_of_40_gb_holds_14_answers_at_once_and_the_15th_makes_the_batches_smaller_until_it_is_tried_again():
    """The crash of an article at 15 concurrent requests."""
    preset = load_preset("llama2-7b-a100")
    device = SimulatedDevice(preset, clock=LeapClock())

    class Generator:
        def predict(self, inputs):
            device.launch(preset.service.predict, len(inputs))
            return inputs

    bench, seen = Bench(Generator(), most=16, device=device), []
    for users, pause_s in ((14, 0), (15, 0), (14, 10), (14, 10), (14, 10), (15, 0)):
        bench.clock.advance(pause_s * 1_000_000_000)
        assert bench.run(list(range(users)))[1] == list(range(users))
        seen.append((bench.room.most_at_once, device.memory().ooms))
    assert seen == [(16, 0), (7, 1), (14, 1), (14, 1), (16, 1), (7, 2)]


def starve(count):
    """A simulated device whose memory comes and goes, until so many calls have failed for want of it."""
    chance, model = random.Random(count), Model()
    bench = Bench(model, device=SimulatedDevice())
    figures = {"out_of_memory": 0, "requests": 0, "failed": 0, "converged_within": 0, "least_cap": 64}
    while figures["out_of_memory"] < count:
        model.fits = chance.randint(1, 80)
        bench.clock.advance(chance.randint(0, 30) * 1_000_000_000)
        done = len(model.sizes)
        for _ in range(3):
            size = chance.randint(1, 64)
            figures["requests"] += size
            figures["failed"] += bench.run(list(range(size)))[1] != list(range(size))
            figures["least_cap"] = min(figures["least_cap"], bench.room.most_at_once)
        lacking = sum(size > model.fits for size in model.sizes[done:])
        figures["out_of_memory"] += lacking
        figures["converged_within"] = max(figures["converged_within"], lacking)
    return figures


def check(figures, told):
    told("R11", TARGET, exits=0, **figures)  # an exit would have ended this test
    assert figures["failed"] == 0
    assert figures["least_cap"] >= 1
    assert figures["converged_within"] <= 10


def test_fifty_calls_without_memory_lose_no_request(told):
    check(starve(50), told)


@pytest.mark.slow
def test_five_hundred_calls_without_memory_lose_no_request(told):
    check(starve(500), told)


def test_the_count_notices_a_server_that_does_not_try_again(monkeypatch):
    """The control of the tests above."""
    monkeypatch.setattr("perfkit.serving.server.batch_run.BatchRunner._run_in_parts", lambda *_: [])
    assert starve(5)["failed"] > 0


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
