"""Real threads on one timeline: exact instants however late anybody looks."""

from threading import Thread

from perfkit.clock import ManualClock
from perfkit.serving.devices.simulated.driver import Driver
from perfkit.serving.devices.simulated.engine import Stream
from perfkit.serving.devices.simulated.preset import COMPUTE, DEFAULT_PRESET, H2D, Step


def new_driver(clock):
    return Driver(DEFAULT_PRESET, clock, seed=0)


def kernel(length_ns, engine=COMPUTE):
    return [Step(engine, length_ns, 0.0)]


def test_instants_are_exact_when_the_waiter_looks_late():
    clock = ManualClock()
    driver = new_driver(clock)
    _, first = driver.submit(Stream(), kernel(100))
    _, second = driver.submit(Stream(), kernel(100))
    clock.advance(5_000)
    driver.wait(second)
    assert [(first.started_ns, first.ended_ns), (second.started_ns, second.ended_ns)] == [(0, 100), (100, 200)]


def test_a_sleeping_waiter_returns_only_when_its_overtaken_work_is_done():
    clock, returned = ManualClock(), []
    driver = new_driver(clock)
    driver.submit(Stream(), kernel(100))
    _, waiting = driver.submit(Stream(), kernel(100))
    waiter = Thread(target=lambda: (driver.wait(waiting), returned.append(clock.now_ns())))
    waiter.start()
    _, urgent = driver.submit(Stream(priority=-1), kernel(1_000))
    for _ in range(1_200):
        clock.advance(1)
    waiter.join(timeout=10)
    assert (urgent.started_ns, waiting.started_ns, waiting.ended_ns) == (100, 1_100, 1_200)
    assert returned == [1_200]


def test_a_stream_without_open_work_has_no_tail():
    clock = ManualClock()
    driver, stream = new_driver(clock), Stream()
    assert driver.tail(stream) == (None, 0)
    _, operation = driver.submit(stream, kernel(100))
    assert driver.tail(stream) == (operation, 0)
    clock.advance(100)
    assert driver.tail(stream) == (None, 100)


def test_no_work_is_no_operation():
    assert new_driver(ManualClock()).submit(Stream(), []) is None


def test_busy_seconds_and_utilisation_follow_the_clock():
    clock = ManualClock(start_ns=10**9)
    driver = new_driver(clock)
    driver.submit(Stream(), kernel(10**8))
    driver.submit(Stream(), kernel(10**7, H2D))
    clock.advance(5 * 10**7)
    assert driver.busy_s() == {"compute": 0.05, "h2d": 0.01, "d2h": 0.0, "host": 0.0}
    clock.advance(5 * 10**7 + 10**9 // 12)
    assert round(driver.utilisation_ratio(), 6) == 0.5


def test_many_threads_use_a_serial_engine_one_after_another():
    clock, operations = ManualClock(), []
    driver = new_driver(clock)

    def worker():
        for _ in range(20):
            _, operation = driver.submit(Stream(), kernel(10))
            operations.append(operation)

    threads = [Thread(target=worker) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    clock.advance(1_600)
    assert all(driver.has_ended(operation) for operation in operations)
    assert sorted(operation.started_ns for operation in operations) == list(range(0, 1_600, 10))
