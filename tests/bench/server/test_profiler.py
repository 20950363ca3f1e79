"""How much throughput is left while py-spy looks, with the settings that perfkit gives it?"""

import pytest

from perfkit.errors import CollectorUnavailable
from perfkit.measuring.collectors.collector import Target
from perfkit.measuring.collectors.pyspy import PySpy

pytestmark = [pytest.mark.bench, pytest.mark.timeout(1200)]

ROUNDS = 5
SECONDS = 4
CONCURRENCY = 8
LEAST_LEFT = 0.85


@pytest.fixture
def profiling(tmp_path):
    """Run something while py-spy records; returns what it returned and what py-spy said about itself."""

    def profiled(pid, work):
        collector = PySpy()
        try:
            collector.start(Target(pid=pid, folder=tmp_path))
        except CollectorUnavailable as error:
            pytest.skip(str(error))
        try:
            result = work()
        finally:
            recording = collector.stop()
        assert recording.missing is None, recording.missing
        return result, recording.notes

    return profiled


@pytest.mark.parametrize(("model", "max_size"), [("noop", 1), ("mlp", 16)])
def test_throughput_under_the_profiler(model, max_size, start_perfkit, profiling, drive, rounds, show, judge):
    notes = []
    with start_perfkit(model, batch={"max_size": max_size}) as (ours, service):

        def play():
            before = drive(ours, CONCURRENCY, SECONDS)
            during, said = profiling(service.pid, lambda: drive(ours, CONCURRENCY, SECONDS))
            notes.extend(said)
            return {"off": before, "on": during, "off again": drive(ours, CONCURRENCY, SECONDS)}

        played = rounds(play, ROUNDS)
    figures = {name: [phases[name].throughput_rps for phases in played] for name in played[0]}
    show(f"Throughput, req/s, {model}, {CONCURRENCY} users, py-spy off, on, off", figures, ".0f")
    print(f"  {notes[-1]}")
    ratios = [
        2 * phases["on"].throughput_rps / (phases["off"].throughput_rps + phases["off again"].throughput_rps)
        for phases in played
    ]
    left = show("Ratios", {"on / off": ratios}, ".3f")["on / off"]
    judge("throughput left", left, least=LEAST_LEFT)
