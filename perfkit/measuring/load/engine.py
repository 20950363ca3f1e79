"""How does a phase of load run from its first request to its last reply?

One thread, one epoll loop. Two timers wake it: the alarm at the exact instant at which a request is
due, and a tick that looks for time-outs, writes samples and notices that the phase is to end. No
request has a timer of its own.
"""

from __future__ import annotations

import random

from perfkit.clock import NS_PER_S, REAL_CLOCK, process_cpu_ns
from perfkit.measuring.load.arrivals import Arrivals
from perfkit.measuring.load.cautious import Caution, CautiousChannel
from perfkit.measuring.load.channel import Channel, Site
from perfkit.measuring.load.desk import Desk
from perfkit.measuring.load.driver import Driver, Loop
from perfkit.measuring.load.loops import ClosedLoop, changes_level
from perfkit.measuring.load.poller import READS, Poller
from perfkit.measuring.load.recorder import Recorder
from perfkit.measuring.load.resends import Resends
from perfkit.measuring.load.retries import RetryPolicy, Throttle
from perfkit.measuring.load.samples import SampleWriter
from perfkit.measuring.load.schedule import plan_users
from perfkit.measuring.load.script import Script
from perfkit.measuring.load.shifts import ShiftingUsers
from perfkit.measuring.load.spec import LoadSpec
from perfkit.measuring.load.target import Target
from perfkit.measuring.load.timer import Timer
from perfkit.measuring.load.users import Users
from perfkit.records import EndState

_LONGEST_TICK_NS = NS_PER_S // 20
_SHORTEST_TICK_NS = NS_PER_S // 200
STOP_GRACE_NS = NS_PER_S
"""How long replies are awaited after somebody asked the generator to stop."""


class Engine:
    """Runs one phase of load. One thread, except `ask_to_stop`, which a signal handler may call."""

    def __init__(self, spec: LoadSpec, target: Target, script: Script, samples: SampleWriter) -> None:
        self._spec = spec
        self.script = script
        self._samples = samples
        self._poller = Poller()
        self._alarm = Timer()
        self._ticker = Timer()
        self._channels: list[Channel] = []
        self.recorder = Recorder(samples)
        self.desk = Desk(spec.first_request_id, script.order, self.recorder, spec.share)
        self._caution = self._choose_caution()
        self.resends = self._choose_resends()
        self.driver: Driver = self.resends or self._choose_loop()
        record = self.resends.record if self.resends else self.recorder.record
        self._site = Site(
            target=target, load=spec.load, requests=script.requests, record=record, freed=self.driver.freed
        )
        self._is_tick_due = False
        self._is_stop_asked = False
        self.was_stopped = False
        self.started_ns = self.ended_ns = self.drained_ns = self.cpu_ns = 0

    def _choose_caution(self) -> Caution | None:
        load = self._spec.load
        if load.deadline_s is None and not load.retries.is_on:
            return None
        return Caution(
            deadline_ns=None if load.deadline_s is None else round(load.deadline_s * NS_PER_S),
            throttle=None if load.retries.throttle_s is None else Throttle(load.retries.throttle_s),
            source=random.Random(f"throttle {self._spec.seed}"),
        )

    def _choose_resends(self) -> Resends | None:
        load = self._spec.load
        if self._caution is None or not load.retries.is_on:
            return None
        policy = RetryPolicy(load.retries, load.deadline_s)
        source = random.Random(f"backoff {self._spec.seed}")
        return Resends(self._choose_loop(), policy, self._caution.throttle, self.recorder, source)

    def _choose_loop(self) -> Loop:
        spec = self._spec
        load, share = spec.load, spec.share
        if not isinstance(load, ClosedLoop):
            may_open = share.of_amount(load.max_connections)
            return Arrivals(may_open, self.script.offsets_ns, self._alarm, self.desk, self._open_channel)
        users = ShiftingUsers if changes_level(load) else Users
        return users(plan_users(load, spec.seconds, share), self._alarm, self.desk, self._open_channel)

    def _open_channel(self) -> Channel:
        if self._caution is None:
            channel = Channel(self._site, self._poller)
        else:
            channel = CautiousChannel(self._site, self._poller, self._caution)
        self._channels.append(channel)
        return channel

    def ask_to_stop(self) -> None:
        """Schedule nothing more, wait a moment for replies, then leave."""
        self._is_stop_asked = True

    def run(self, start_ns: int) -> None:
        """Run the phase from an instant on. Raises OSError when samples cannot be written."""
        self._plan(start_ns)
        while self._poller.turn() < start_ns and not self._is_stop_asked:
            pass
        cpu_before_ns = process_cpu_ns()
        if self._is_stop_asked:
            self._stop(start_ns)
        else:
            self._poller.change(self._alarm.fd, READS, self._on_alarm)
            self.driver.start(start_ns, self.ended_ns)
            self._turn_until_done()
        self.drained_ns = max(REAL_CLOCK.now_ns(), self.ended_ns)
        self.cpu_ns = process_cpu_ns() - cpu_before_ns

    def _turn_until_done(self) -> None:
        driver, turn = self.driver, self._poller.turn
        while not driver.is_done:
            now_ns = turn()
            driver.settle(now_ns)
            if self._is_tick_due:
                self._tick(now_ns)

    def _plan(self, start_ns: int) -> None:
        spec = self._spec
        self.started_ns = start_ns
        self.ended_ns = start_ns + round(spec.seconds * NS_PER_S)
        patience_s = spec.load.connect_timeout_s + spec.load.reply_timeout_s
        self._leave_ns = self.ended_ns + round((patience_s if spec.drain_s is None else spec.drain_s) * NS_PER_S)
        self._patience_ns = round(spec.load.reply_timeout_s * NS_PER_S)
        shortest_s = min(spec.load.connect_timeout_s, spec.load.reply_timeout_s)
        tick_ns = min(_LONGEST_TICK_NS, max(_SHORTEST_TICK_NS, round(shortest_s * NS_PER_S / 10)))
        self._poller.add(self._alarm.fd, READS, lambda _now_ns: self._alarm.acknowledge())
        self._poller.add(self._ticker.fd, READS, self._on_tick)
        if self.resends is not None:
            self._poller.add(self.resends.alarm.fd, READS, self.resends.on_resend_due)
        self._alarm.wake_at(start_ns)
        self._ticker.wake_every(tick_ns, from_ns=1)

    def _on_alarm(self, now_ns: int) -> None:
        self._alarm.acknowledge()
        self.driver.on_alarm(now_ns)

    def _on_tick(self, now_ns: int) -> None:
        # Only noted here: closing a connection in the middle of a turn could hand its descriptor's
        # pending event to another.
        self._ticker.acknowledge()
        self._is_tick_due = True

    def _tick(self, now_ns: int) -> None:
        self._is_tick_due = False
        self._samples.flush_if_due(now_ns)
        if self._is_stop_asked and not self.was_stopped:
            self._stop(now_ns)
        for channel in self._channels:
            if channel.deadline_ns <= now_ns:
                channel.expire(now_ns)
        self.driver.give_up(now_ns - self._patience_ns, EndState.TIMED_OUT)
        if now_ns >= self._leave_ns:
            self._leave(now_ns)

    def _stop(self, now_ns: int) -> None:
        self.was_stopped = True
        self.driver.stop(now_ns)
        self.ended_ns = max(self.started_ns, min(self.ended_ns, now_ns))
        self._leave_ns = min(self._leave_ns, now_ns + STOP_GRACE_NS)

    def _leave(self, now_ns: int) -> None:
        self.driver.stop(now_ns)
        self.driver.give_up(now_ns, EndState.CANCELLED)
        for channel in self._channels:
            channel.cancel(now_ns)

    def close(self) -> None:
        """Close every connection and descriptor."""
        for channel in self._channels:
            channel.close()
        self._alarm.close()
        self._ticker.close()
        if self.resends is not None:
            self.resends.alarm.close()
        self._poller.close()
