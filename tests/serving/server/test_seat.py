"""One worker rests on a seat, and every notice wakes it exactly once."""

import threading

import pytest

from perfkit.serving.server.seat import Seat

HANGS_S = 10


class GuardThatLetsANoticeIn:
    """A lock that somebody else gets first, and uses to notify the seat, whenever it is asked for again."""

    def __init__(self):
        self.notices = []

    def acquire(self):
        for notice in self.notices:
            notice()

    def release(self):
        pass


@pytest.fixture
def seat():
    return Seat(threading.Lock())


def test_a_notice_wakes_the_waiter(seat):
    woken = []

    def rest():
        with seat:
            is_resting.release()
            woken.append(seat.wait(HANGS_S))

    is_resting = threading.Semaphore(0)
    worker = threading.Thread(target=rest)
    worker.start()
    is_resting.acquire()
    with seat:  # free only once the worker waits
        seat.notify()
    worker.join(HANGS_S)
    assert woken == [True]


def test_a_wait_ends_with_its_time(seat):
    with seat:
        assert seat.wait(0.0) is False


def test_a_notice_for_nobody_is_not_kept(seat):
    with seat:
        seat.notify()
        assert seat.wait(0.0) is False


def test_a_second_notice_for_the_same_waiter_is_not_kept():
    guard = GuardThatLetsANoticeIn()
    seat = Seat(guard)
    guard.notices = [seat.notify, seat.notify]
    assert seat.wait(0.0) is True
    guard.notices = []
    assert seat.wait(0.0) is False


def test_a_notice_between_the_time_out_and_the_lock_counts_and_is_not_kept():
    guard = GuardThatLetsANoticeIn()
    seat = Seat(guard)
    guard.notices = [seat.notify]
    assert seat.wait(0.0) is True
    guard.notices = []
    assert seat.wait(0.0) is False
