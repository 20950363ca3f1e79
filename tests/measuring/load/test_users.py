"""When does a user of a closed loop send again? Told with a desk and an alarm that only take notes."""

from perfkit.measuring.load.loops import ClosedLoop
from perfkit.measuring.load.schedule import plan_users
from perfkit.measuring.load.share import Share
from perfkit.measuring.load.users import LONGEST_BACK_OFF_NS, Users, back_off_ns

S = 1_000_000_000


class Desk:
    def __init__(self):
        self.issued = []

    def issue(self, channel, scheduled_ns):
        self.issued.append((channel.name, scheduled_ns))


class Alarm:
    def __init__(self):
        self.set_to = []

    def wake_at(self, instant_ns):
        self.set_to.append(instant_ns)


class Channel:
    def __init__(self, name):
        self.name = name
        self.failures = 0


class Story:
    def __init__(self, **load):
        self.desk, self.alarm, self.channels = Desk(), Alarm(), []
        self.users = Users(plan_users(ClosedLoop(**load), 1.0, Share()), self.alarm, self.desk, self._open)

    def _open(self):
        self.channels.append(Channel("abc"[len(self.channels)]))
        return self.channels[-1]


def test_without_think_time_a_user_sends_at_the_instant_of_the_reply():
    story = Story(concurrency=2)
    story.users.start(100, 1000)
    story.users.freed(story.channels[1], 150)
    assert story.desk.issued == [("a", 100), ("b", 100), ("b", 150)]
    assert story.alarm.set_to == []


def test_a_thinking_user_is_scheduled_one_think_time_after_the_reply_however_late_the_alarm():
    story = Story(think_time_s=1.0)
    story.users.start(0, 100 * S)
    first_ns = story.alarm.set_to[-1]
    story.users.on_alarm(first_ns)
    story.users.freed(story.channels[0], 5 * S)
    assert story.alarm.set_to[-1] == 6 * S
    story.users.on_alarm(6 * S + 999)
    assert story.desk.issued == [("a", first_ns), ("a", 6 * S)]


def test_users_that_become_ready_at_the_end_or_later_stop():
    story = Story(concurrency=2)
    story.users.start(0, 1000)
    story.users.freed(story.channels[0], 999)
    story.users.freed(story.channels[1], 1000)
    assert not story.users.is_done
    story.users.freed(story.channels[0], 1001)
    assert story.users.is_done
    assert [instant for _, instant in story.desk.issued] == [0, 0, 999]


def test_a_user_without_a_reply_holds_back_longer_each_time_and_starts_over_after_success():
    story = Story()
    channel_pauses = []
    story.users.start(0, 100 * S)
    for failures in (1, 2, 3, 0):
        story.channels[0].failures = failures
        story.users.freed(story.channels[0], 50 * S)
        channel_pauses.append(story.alarm.set_to[-1] - 50 * S if failures else 0)
        story.users.on_alarm(60 * S)
    assert channel_pauses == [10_000_000, 20_000_000, 40_000_000, 0]
    assert back_off_ns(1000) == LONGEST_BACK_OFF_NS


def test_stopping_retires_thinking_users_and_lets_busy_ones_finish():
    story = Story(concurrency=2, think_time_s=10.0)
    story.users.start(0, 100 * S)
    story.users.on_alarm(10 * S)
    story.users.freed(story.channels[0], 11 * S)
    story.users.stop(12 * S)
    assert not story.users.is_done
    story.users.freed(story.channels[1], 13 * S)
    assert story.users.is_done
    assert len(story.desk.issued) == 2
