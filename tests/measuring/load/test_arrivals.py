"""Which connection does each request of an open loop take? Told with a desk and channels that only take notes."""

from array import array

from perfkit.measuring.load.arrivals import Arrivals
from perfkit.measuring.load.desk import Ticket
from perfkit.records import EndState


class Channel:
    def __init__(self, name, log):
        self.name = name
        self.failures = 0
        self._log = log

    def begin(self, request_id, _payload, scheduled_ns):
        self._log.append((self.name, request_id, scheduled_ns))


class Story:
    """A desk, an alarm and a factory of channels in one; `log` holds (channel, request, due instant)."""

    def __init__(self, offsets_ns, max_connections=1024):
        self.log, self.dropped, self.alarm_ns = [], [], None
        self.channels = {}
        self._next_id = 1
        self.arrivals = Arrivals(max_connections, array("q", offsets_ns), self, self, self._open)
        self.arrivals.start(100, 1000)

    def _open(self):
        name = "abcd"[len(self.channels)]
        self.channels[name] = Channel(name, self.log)
        return self.channels[name]

    def wake_at(self, instant_ns):
        self.alarm_ns = instant_ns

    def hold(self, scheduled_ns):
        self._next_id += 1
        return Ticket(self._next_id - 1, 0, scheduled_ns)

    def issue(self, channel, scheduled_ns):
        channel.begin(*self.hold(scheduled_ns))

    def drop(self, ticket, outcome):
        self.dropped.append((ticket.request_id, outcome))

    def free(self, name, failures=0):
        self.channels[name].failures = failures
        self.arrivals.freed(self.channels[name], 0)


def test_everything_due_leaves_at_once_and_the_alarm_is_set_for_the_next():
    story = Story([10, 20, 30])
    assert story.alarm_ns == 110
    story.arrivals.on_alarm(125)
    assert story.log == [("a", 1, 110), ("b", 2, 120)]
    assert story.alarm_ns == 130


def test_the_connection_used_last_is_taken_first_and_a_failed_one_last():
    story = Story([10, 20, 30, 40, 50, 60])
    story.arrivals.on_alarm(130)
    story.free("b")
    story.free("c")
    story.free("a", failures=1)
    story.arrivals.on_alarm(160)
    assert [name for name, _, _ in story.log] == ["a", "b", "c", "c", "b", "a"]


def test_requests_without_a_connection_leave_in_the_order_in_which_they_were_due():
    story = Story([10, 20, 30, 40], max_connections=1)
    story.arrivals.on_alarm(130)
    story.free("a")
    story.arrivals.on_alarm(140)  # must not overtake those that wait
    for _ in range(3):
        story.arrivals.settle(0)
        story.free("a")
    assert story.log == [("a", 1, 110), ("a", 2, 120), ("a", 3, 130), ("a", 4, 140)]
    assert story.arrivals.held == 3
    assert story.arrivals.is_done


def test_those_that_were_due_too_long_ago_are_dropped_unsent():
    story = Story([10, 20, 30], max_connections=1)
    story.arrivals.on_alarm(130)
    story.arrivals.give_up(120, EndState.TIMED_OUT)
    story.free("a")
    story.arrivals.settle(0)
    assert story.dropped == [(2, EndState.TIMED_OUT)]
    assert story.log == [("a", 1, 110), ("a", 3, 130)]


def test_after_a_stop_nothing_becomes_due_and_the_rest_is_awaited():
    story = Story([10, 20])
    story.arrivals.on_alarm(110)
    story.arrivals.stop(115)
    assert not story.arrivals.is_done
    story.free("a")
    story.arrivals.on_alarm(500)
    assert story.arrivals.is_done
    assert story.log == [("a", 1, 110)]
