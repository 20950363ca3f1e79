"""Is an instant of the device told in host time, as well as is claimed?"""

import pytest
import torch

from perfkit.clock import NS_PER_S
from perfkit.serving.devices.cuda.hosttime import ANCHOR_AGE_NS, TRIES, Anchor, HostTime


class SlowHost:
    """A host clock on which each look takes as long as the test says."""

    def __init__(self, clock):
        self._clock = clock
        self.looks_ns = []

    def now_ns(self):
        self._clock.at_ns += self.looks_ns.pop(0) if self.looks_ns else 0
        return self._clock.at_ns


@pytest.fixture
def host(gpu):
    return SlowHost(gpu.clock)


def test_the_best_of_a_few_tries_is_the_anchor_and_its_error_half_of_what_the_try_took(gpu, host):
    host.looks_ns = [0, 9_000, 0, 5_000, 0, 400, 0, 7_000, 0, 8_000]
    assert HostTime(host).error_ns() == 200 + 2  # and what the clocks may drift apart in the 15 µs since


def test_an_event_is_told_in_host_time(gpu, host):
    time = HostTime(host)
    gpu.clock.at_ns += 3_000_000
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    event.synchronize()
    assert time.instant_ns(event) == gpu.clock.at_ns


def test_an_anchor_is_taken_anew_when_it_is_old_and_not_before(gpu, host):
    time = HostTime(host)
    before = gpu.calls.count("record")
    gpu.clock.at_ns += ANCHOR_AGE_NS - 1
    time.renew_if_old()
    assert gpu.calls.count("record") == before
    assert time.error_ns() == 100_000
    gpu.clock.at_ns += 1
    time.renew_if_old()
    assert gpu.calls.count("record") == before + TRIES
    assert time.error_ns() == 0


def test_a_host_that_lets_no_try_through_keeps_the_old_anchor(gpu, host):
    time = HostTime(host)
    gpu.clock.at_ns += NS_PER_S
    host.looks_ns = [0, *[0, 5_000_000] * TRIES]
    time.renew_if_old()
    assert 100_000 < time.error_ns() < 110_000


def test_the_error_grows_with_the_age_of_the_anchor():
    anchor = Anchor(None, host_ns=0, error_ns=500)
    assert [anchor.error_at_ns(age_ns) for age_ns in (0, NS_PER_S, 10 * NS_PER_S)] == [500, 100_500, 1_000_500]
