"""Do the batching policies reach the service, and can a client see what they decided? Real sockets."""

from __future__ import annotations

import pytest

from perfkit.errors import ConfigError


def test_the_adaptive_policy_learns_from_what_is_served(lab, dial, eventually):
    lab.configure({"batch.policy": "adaptive", "batch.max_size": 16, "batch.p99_budget_s": 60.0})
    assert lab.stats()["batching"] == {"policy": "adaptive", "max_size": 1, "max_delay_s": 0.0}
    wires = [dial(lab) for _ in range(8)]
    for _ in range(5):
        for wire in wires:
            wire.post({"input": {"sleep_s": 0.001}})
        assert {wire.answer().status for wire in wires} == {200}
        if lab.stats()["batching"]["max_size"] == 16:
            break
    grown = lab.stats()["batching"]
    assert 2 <= grown["max_size"] <= 16
    assert 0 < grown["max_delay_s"] <= 60.0


def test_the_fixed_policy_stays_where_it_was_set(lab, dial):
    lab.configure({"batch.max_size": 4, "batch.max_delay_s": 0.25})
    assert lab.stats()["batching"] == {"policy": "fixed", "max_size": 4, "max_delay_s": 0.25}


def test_a_model_that_does_not_pad_refuses_buckets(lab):
    with pytest.raises(ConfigError, match=r"Probe has no collate_to\(items, buckets\); use longest"):
        lab.configure({"batch.padding": "buckets"})


def test_settings_that_work_against_each_other_are_told(lab):
    lab.configure({"workers": 3, "batch.max_size": 2})
    (line,) = lab.stats()["warnings"]
    assert line[:60] == "3 workers with up to 2 requests in hand are 6, more than 2 x"
    lab.configure({"workers": 1})
    assert lab.stats()["warnings"] == []
