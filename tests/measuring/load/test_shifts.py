"""When does each user send where their number changes? Told with a desk and an alarm that only take notes."""

import pytest

from perfkit.measuring.load.loops import ClosedLoop
from perfkit.measuring.load.schedule import Shift, plan_users, user_shifts
from perfkit.measuring.load.shape import Shape
from perfkit.measuring.load.share import Share
from perfkit.measuring.load.shifts import ShiftingUsers

S = 1_000_000_000


def stairs(levels):
    return ClosedLoop(profile="staircase", shape=Shape(levels=levels))


def test_users_join_step_by_step_and_stay():
    assert user_shifts(stairs("1/2/3"), 3.0) == [[Shift(0, 3 * S)], [Shift(S, 3 * S)], [Shift(2 * S, 3 * S)]]


def test_users_of_a_spike_come_for_it_only():
    load = ClosedLoop(concurrency=1, profile="spike", shape=Shape(spike_factor=2.0, spike_ratio=0.5))
    assert user_shifts(load, 4.0) == [[Shift(0, 4 * S)], [Shift(S, 3 * S)]]


def test_who_leaves_may_come_back():
    assert user_shifts(stairs("2/1/2"), 3.0)[1] == [Shift(0, S), Shift(2 * S, 3 * S)]


def test_users_of_a_ramp_start_one_after_the_other_as_in_jmeter():
    load = ClosedLoop(concurrency=4, profile="ramp", shape=Shape(rise_ratio=1.0))
    assert [shifts[0].start_ns / S for shifts in user_shifts(load, 8.0)] == [0, 2, 4, 6]


@pytest.mark.parametrize("level", [0.5, 1.0, 1.5])
def test_a_part_of_a_user_is_a_user(level):
    load = stairs(f"{level}/3")
    assert sum(shifts[0].start_ns == 0 for shifts in user_shifts(load, 2.0)) == -(-level // 1)


class Channel:
    failures = 0

    def __init__(self, name):
        self.name = name


class Story:
    def __init__(self, load, seconds):
        self.issued, self.channels = [], []
        self.users = ShiftingUsers(plan_users(load, seconds, Share()), self, self, self._open)
        self.users.start(100 * S, round((100 + seconds) * S))

    def issue(self, channel, scheduled_ns):
        self.issued.append((channel.name, scheduled_ns))

    def wake_at(self, instant_ns):
        pass

    def _open(self):
        self.channels.append(Channel("abc"[len(self.channels)]))
        return self.channels[-1]


def test_a_user_sends_in_its_shifts_and_sits_out_between_them():
    story = Story(stairs("2/1/2"), 3.0)
    assert story.issued == [("a", 100 * S), ("b", 100 * S)]
    story.users.freed(story.channels[0], 101 * S)
    story.users.freed(story.channels[1], 101 * S)  # its shift is over at this instant
    assert story.issued[2:] == [("a", 101 * S)]
    story.users.on_alarm(102 * S)
    assert story.issued[3:] == [("b", 102 * S)]
    story.users.freed(story.channels[1], 103 * S)
    assert not story.users.is_done
    story.users.freed(story.channels[0], 103 * S)
    assert story.users.is_done
