"""Do the rules about retries hold at any time and by any chance? Pure, in virtual time."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfkit import fields
from perfkit.errors import ConfigError
from perfkit.measuring.load.attempts import MOST_ATTEMPTS, STRIDE, attempt_of, request_of
from perfkit.measuring.load.loops import ClosedLoop, OpenLoop
from perfkit.measuring.load.retries import (
    BUDGET_BURST,
    NOT_RETRIED,
    Budget,
    Failure,
    Retries,
    RetryPolicy,
    Throttle,
    hold_back_ratio,
    longest_pause_s,
    pause_s,
    read_retry_after,
)
from perfkit.records import EndState

S = 1_000_000_000
CHANCES = st.floats(0.0, 1.0, exclude_max=True)
MENDABLE = sorted(set(EndState) - NOT_RETRIED - {EndState.OPEN})


def failure(attempt=1, outcome=EndState.REJECTED, age_s=0.0, retry_after_s=0.0):
    return Failure(attempt=attempt, outcome=outcome, age_ns=round(age_s * S), retry_after_s=retry_after_s)


@given(request_id=st.integers(1, STRIDE - 1), attempt=st.integers(1, MOST_ATTEMPTS))
def test_a_number_on_the_wire_names_request_and_attempt_and_fits_eighteen_digits(request_id, attempt):
    number = request_id + (attempt - 1) * STRIDE
    assert (request_of(number), attempt_of(number)) == (request_id, attempt)
    assert len(str(number)) <= 18


@given(
    attempt=st.integers(1, MOST_ATTEMPTS),
    base_s=st.floats(0.0, 60.0),
    further_s=st.floats(0.0, 500.0),
    asked_s=st.floats(0, 100),
    chance=CHANCES,
)
def test_a_pause_is_what_the_service_asked_for_and_at_most_the_backoff_on_top(
    attempt, base_s, further_s, asked_s, chance
):
    retries = Retries(max_attempts=MOST_ATTEMPTS, base_s=base_s, cap_s=base_s + further_s)
    pause = pause_s(attempt, retries, asked_s, chance)
    assert asked_s <= pause <= asked_s + min(base_s * 2.0 ** (attempt - 1), retries.cap_s)


def test_the_backoff_doubles_up_to_its_cap():
    retries = Retries(max_attempts=9, base_s=0.1, cap_s=1.0)
    assert [longest_pause_s(attempt, retries) for attempt in range(1, 7)] == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (b"3", 3.0),
        (b" 12 ", 12.0),
        *((value, 0.0) for value in (b"0", b"-1", b"1.5", b"9" * 400, b"", b"Mon, 30 Nov 2026 05:00:00 GMT")),
    ],
)
def test_a_retry_after_counts_in_whole_seconds_only(value, seconds):
    assert read_retry_after(value) == seconds


@given(ratio=st.floats(0.0, 1.0), events=st.lists(st.booleans(), max_size=400))
def test_retries_never_exceed_the_share_of_requests_and_the_first_burst(ratio, events):
    budget, requests, retried = Budget(ratio), 0, 0
    for is_request in events:
        if is_request:
            budget.earn()
            requests += 1
        else:
            retried += budget.spend()
        assert retried <= ratio * requests + BUDGET_BURST + 1e-3


def test_a_budget_of_one_in_five_is_spent_whole_under_failures_without_end():
    budget = Budget(0.2)
    assert sum(budget.spend() for _ in range(100)) == BUDGET_BURST
    retried = 0
    for _ in range(1000):
        budget.earn()
        retried += budget.spend()
    assert retried == 200


def test_without_a_budget_every_retry_is_allowed_and_with_none_left_of_it_not_one():
    assert all(Budget(None).spend() for _ in range(1000))
    assert not Budget(0.0).spend()


@given(requests=st.integers(0, 10**6), data=st.data())
def test_the_share_held_back_follows_its_formula_and_is_a_share(requests, data):
    accepts = data.draw(st.integers(0, requests))
    share = hold_back_ratio(requests, accepts)
    assert 0.0 <= share < 1.0
    assert share == max(0.0, (requests - 2 * accepts) / (requests + 1))


@given(
    events=st.lists(st.tuples(st.integers(0, 3 * S), st.booleans()), max_size=100),
    window_s=st.floats(0.1, 10.0),
)
def test_the_throttle_counts_what_lies_in_its_window_and_forgets_what_does_not(events, window_s):
    throttle, now_ns, asked = Throttle(window_s), 0, []
    slot_ns = max(1, round(window_s * S / 10))
    for step_ns, is_accepted in events:
        now_ns += step_ns
        throttle.lets_through(now_ns, chance=0.999)
        if is_accepted:
            throttle.accepted(now_ns)
        asked.append((now_ns // slot_ns, is_accepted))
        inside = [accepted for slot, accepted in asked if slot > now_ns // slot_ns - 10]
        assert throttle.counts(now_ns) == (len(inside), sum(inside))


def test_a_throttled_client_offers_a_dead_service_next_to_nothing_and_comes_back_when_it_recovers():
    throttle, source = Throttle(2.0), random.Random(1)

    def offered(first_s, seconds, is_alive):
        sent = 0
        for tick in range(seconds * 100):
            now_ns = first_s * S + tick * S // 100
            if throttle.lets_through(now_ns, source.random()):
                sent += 1
                if is_alive:
                    throttle.accepted(now_ns)
        return sent

    assert offered(0, 5, is_alive=True) == 500
    assert offered(5, 5, is_alive=False) < 250
    assert offered(10, 10, is_alive=False) < 30
    offered(20, 20, is_alive=True)  # what leaves at most doubles from window to window
    assert offered(40, 5, is_alive=True) == 500


@pytest.mark.parametrize("outcome", sorted(NOT_RETRIED))
def test_what_another_attempt_cannot_mend_is_not_tried_again(outcome):
    assert RetryPolicy(Retries(max_attempts=5), None).pause_ns(failure(outcome=outcome), 0.5) is None


@given(outcome=st.sampled_from(MENDABLE), attempts=st.integers(2, 20), chance=CHANCES)
def test_a_request_is_attempted_so_many_times_and_not_once_more(outcome, attempts, chance):
    policy = RetryPolicy(Retries(max_attempts=attempts, budget_ratio=None), None)
    pauses = [policy.pause_ns(failure(attempt=number, outcome=outcome), chance) for number in range(1, attempts + 1)]
    assert all(pause is not None for pause in pauses[:-1])
    assert pauses[-1] is None
    assert (policy.retried, policy.over_budget) == (attempts - 1, 0)


@given(age_s=st.floats(0.0, 2.0), retry_after_s=st.floats(0.0, 2.0), chance=CHANCES)
def test_no_attempt_is_planned_for_after_the_deadline_and_none_of_those_costs_budget(age_s, retry_after_s, chance):
    policy = RetryPolicy(Retries(max_attempts=5), deadline_s=1.0)
    asked = failure(age_s=age_s, retry_after_s=retry_after_s)
    pause_ns = policy.pause_ns(asked, chance)
    assert pause_ns is None or asked.age_ns + pause_ns < S
    assert policy.retried == (pause_ns is not None)


def test_a_retry_over_budget_ends_the_request_and_is_counted():
    policy = RetryPolicy(Retries(max_attempts=9), None)
    allowed = [policy.pause_ns(failure(), 0.0) is not None for _ in range(BUDGET_BURST + 3)]
    assert allowed == [True] * BUDGET_BURST + [False] * 3
    for _ in range(5):
        policy.first_attempt_ended()
    assert policy.pause_ns(failure(), 0.0) is not None
    assert (policy.retried, policy.over_budget) == (BUDGET_BURST + 1, 3)


@pytest.mark.parametrize("record", [ClosedLoop, OpenLoop])
def test_retries_are_reached_by_their_dotted_names(record):
    values = {"retries.max_attempts": "4", "retries.budget_ratio": "none", "retries.throttle_s": "2", "batch": "off"}
    values |= {"deadline_s": "0.5", "lane": "online"}
    changes = {name: fields.parse(name, text, record) for name, text in values.items()}
    assert fields.replace(record(), changes) == record(
        retries=Retries(max_attempts=4, budget_ratio=None, throttle_s=2.0), deadline_s=0.5, lane="online", batch="off"
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Retries(base_s=2.0, cap_s=1.0), "retries.cap_s is 1 and retries.base_s 2; the cap takes"),
        (lambda: Retries(max_attempts=0), "max_attempts is 0; it takes a whole number from 1 to 100"),
        (lambda: ClosedLoop(lane="a\r\nHost: b"), "lane is .*; it takes a name of letters"),
        (lambda: OpenLoop(batch="maybe"), "batch is 'maybe'; it takes one of on, off"),
    ],
)
def test_a_setting_out_of_range_is_refused(make, message):
    with pytest.raises(ConfigError, match=message):
        make()
