"""Does /metrics say what happened, and does the dashboard ask for nothing that is not there?"""

import json
import re

import pytest
from prometheus_client.parser import text_string_to_metric_families

from perfkit.measuring.service import launch
from perfkit.resources import data_path
from perfkit.serving.server.defaults import settings_for
from perfkit.serving.server.histogram import BatchSizes


def scraped(wire):
    """Name and labels -> value, of the whole page."""
    wire.get("/metrics")
    families = text_string_to_metric_families(wire.answer().body.decode())
    return {(sample.name, *sample.labels.values()): sample.value for family in families for sample in family.samples}


@pytest.fixture(scope="module")
def busy(models_on_path, tmp_path_factory):
    """A service that has answered some requests and rejected some."""
    with launch(settings_for("lab_models:Probe", {"batch.max_size": 2, "queue.depth": 3})) as service:
        yield service


def test_every_end_is_counted_and_every_reject_has_its_reason(busy, dial, tmp_path):
    gate = tmp_path / "gate"
    wires = [dial(busy) for _ in range(6)]
    before = scraped(wires[0])
    for number, wire in enumerate(wires[:4], start=1):
        wire.post({"input": {"gate": str(gate)}})
        while (busy.stats()["admitted"], busy.stats()["counters"]["accepted"]) != (number - 1, number):
            pass  # the first is in the worker's hands, the others wait
    wires[4].post({"input": {}})
    assert wires[4].answer().code == (503, "queue_full")
    gate.touch()
    assert [wire.answer().status for wire in wires[:4]] == [200] * 4
    after = scraped(wires[5])
    counted = {key: after[key] - before.get(key, 0) for key in after if after[key] != before.get(key, 0)}
    assert counted[("perfkit_requests_total", "ok")] == 4
    assert counted[("perfkit_requests_total", "rejected")] == 1
    assert counted[("perfkit_rejects_total", "queue_full")] == 1
    assert (counted[("perfkit_batch_size_bucket", "1")], counted[("perfkit_batch_size_bucket", "2")]) == (2, 3)
    assert (counted[("perfkit_batch_size_count",)], counted[("perfkit_batch_size_sum",)]) == (3, 4)
    assert counted[("perfkit_request_seconds_count",)] == 5
    assert after[("process_resident_memory_bytes",)] > 0


def test_a_batch_counts_once_however_many_share_it():
    sizes = BatchSizes()
    for size in (1, 3, 3, 3, 1024):
        sizes.requests_at[size] += 1
    assert [round(count, 6) for count in sizes.buckets()] == [1, 0, 1, 0, 0, 0, 0, 0, 0, 0, round(1 / 1024, 6)]
    assert sizes.requests == 5


def test_a_guard_that_is_there_tells_where_it_stands(busy, dial):
    wire = dial(busy)
    assert not any(name[0] in ("perfkit_breaker", "perfkit_concurrency_limit") for name in scraped(wire))
    busy.configure({"breaker.enabled": True, "limits.policy": "adaptive", "limits.in_hand": 12})
    told = scraped(wire)
    busy.configure({"breaker.enabled": False, "limits.policy": "none"})
    assert [told[("perfkit_breaker", "default", state)] for state in ("closed", "open", "half_open")] == [1, 0, 0]
    assert (told[("perfkit_concurrency_limit",)], told[("perfkit_inputs_in_hand",)]) == (12, 0)


def test_the_dashboard_asks_only_for_what_the_server_tells(busy, dial):
    everything = {"lanes.online.priority": 0, "breaker.enabled": True, "limits.policy": "fixed"}
    busy.configure(everything)
    known = {name for name, *_ in scraped(dial(busy))} | {"perfkit_rejects_total"}
    panels = json.loads(data_path("grafana", "perfkit.json").read_text())["panels"]
    asked = {
        name
        for panel in panels
        for target in panel["targets"]
        for name in re.findall(r"\b(?:perfkit|process)_\w+", target["expr"])
    }
    assert len(panels) == 10
    assert asked - known == set()
    assert all(panel["fieldConfig"]["defaults"]["unit"] for panel in panels)


def test_workers_are_told_by_what_they_do(busy, dial, tmp_path):
    gate = tmp_path / "one"
    busy.configure({"workers": 3})
    wire = dial(busy)
    wire.post({"input": {"gate": str(gate)}})
    other = dial(busy)
    while (states := told_states(other)) != {"busy": 1, "resting": 2, "vacant": 0}:
        assert sum(states.values()) == 3
    gate.touch()
    assert wire.answer().status == 200


def told_states(wire):
    """State -> workers."""
    return {key[1]: value for key, value in scraped(wire).items() if key[0] == "perfkit_worker_states"}
