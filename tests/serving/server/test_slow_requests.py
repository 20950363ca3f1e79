"""Does a slow request, and only a slow one, leave a line that says why?"""

import json

import pytest

from perfkit.measuring.service import launch
from perfkit.records import STAGES
from perfkit.serving.server.defaults import settings_for

PROBE = "lab_models:Probe"
TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def told(service):
    """What the server's log says about slow requests, with the log closed first: closing writes what waits."""
    service.configure({"log.slow_s": None, "log.slow_ratio": None})
    return [json.loads(line) for line in service.log.read_text().splitlines() if '"event":"slow_request"' in line]


@pytest.fixture
def serve(dial, models_on_path):
    """Sends numbered payloads one by one to a service that logs slow requests; returns the lines of its log."""

    def run(payloads, changes, *headers):
        with launch(settings_for(PROBE, changes)) as service:
            wire = dial(service)
            for number, payload in enumerate(payloads, start=1):
                wire.post({"input": payload}, f"Perfkit-Id: {number}", *headers)
                assert wire.answer().status == 200
            return told(service)

    return run


def test_a_slow_request_is_told_with_its_stages_and_its_trace(serve):
    payloads = [{}, {"sleep_s": 0.4}, {}]
    (line,) = serve(payloads, {"log.slow_s": 0.4}, f"traceparent: 00-{TRACE}-{SPAN}-01")
    assert (line["request_id"], line["status"], line["end_state"]) == (2, 200, "ok")
    assert (line["trace_id"], line["parent_id"], line["threshold_s"]) == (TRACE, SPAN, 0.4)
    assert list(line["stages_s"]) == [stage for stage in STAGES if stage in line["stages_s"]]
    assert max(line["stages_s"], key=line["stages_s"].get) == "compute"
    assert sum(line["stages_s"].values()) == pytest.approx(line["latency_s"], rel=1e-6)


def test_nothing_is_told_unless_asked_for(serve):
    assert serve([{"sleep_s": 0.1}], {}) == []


def test_a_multiple_of_the_median_is_a_threshold_too(serve):
    lines = serve([{}] * 64 + [{"sleep_s": 1.0}], {"log.slow_ratio": 50.0})
    assert lines[-1]["request_id"] == 65
    assert lines[-1]["latency_s"] >= lines[-1]["threshold_s"] > 0


def test_the_mates_of_the_batch_and_the_queue_on_arrival_are_named(dial, models_on_path, tmp_path):
    gate = tmp_path / "gate"
    with launch(settings_for(PROBE, {"log.slow_s": 1e-6, "batch.max_size": 4})) as service:
        wires = [dial(service) for _ in range(3)]
        for number, wire in enumerate(wires, start=1):
            wire.post({"input": {"gate": str(gate)}}, f"Perfkit-Id: {number}")
            while (service.stats()["admitted"], service.stats()["counters"]["accepted"]) != (number - 1, number):
                pass  # the first is in the worker's hands, the others wait
        gate.touch()
        assert [wire.answer().status for wire in wires] == [200] * 3
        lines = {line["request_id"]: line for line in told(service)}
    found = {number: (line["queued_on_arrival"], line["batch"]["mates"]) for number, line in lines.items()}
    assert found == {1: (0, []), 2: (0, [3]), 3: (1, [2])}


def test_the_log_changes_live(dial, models_on_path):
    with launch(settings_for(PROBE, {})) as service:
        wire = dial(service)
        for number, limit_s in enumerate([1e-6, None, 1e-6], start=1):
            service.configure({"log.slow_s": limit_s})
            wire.post({"input": {}}, f"Perfkit-Id: {number}")
            assert wire.answer().status == 200
        assert [line["request_id"] for line in told(service)] == [1, 3]
