"""What do processes gain where a second worker thread gains nothing, because preprocess is pure Python?"""

import dataclasses
import os

import pytest

pytestmark = [pytest.mark.bench, pytest.mark.timeout(1800)]

ROUNDS = 5
SECONDS = 3
CONCURRENCY = 16
MODEL = "sample_models.pure_python:PurePython"
BODY = '{"input": "how do I reset my password"}'
LEAST_OF_INLINE = 1.5
MOST_OF_ONE_WORKER = 1.3
PLANS = {
    "inline, 1 worker": {"workers": 1, "preprocess.placement": "inline"},
    "inline, 2 workers": {"workers": 2, "preprocess.placement": "inline"},
    "2 processes": {"workers": 1, "preprocess.placement": "processes", "preprocess.processes": 2},
}


def test_python_preprocess_in_processes_beside_threads(start_perfkit, drive, rounds, show, judge):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two cores")
    with start_perfkit(MODEL) as (contestant, service):
        ours = dataclasses.replace(contestant, body=BODY)

        def play():
            phases = {}
            for name, plan in PLANS.items():
                service.configure(plan)
                phases[name] = drive(ours, CONCURRENCY, SECONDS)
            return phases

        played = rounds(play, ROUNDS)
    throughput = {name: [phases[name].throughput_rps for phases in played] for name in PLANS}
    show(f"Throughput, req/s, pure-Python preprocess, {CONCURRENCY} users", throughput, ".0f")
    show("Cores used", {name: [phases[name].cores for phases in played] for name in PLANS}, ".2f")
    one, two, apart = (throughput[name] for name in PLANS)
    ratios = {
        "2 inline workers / 1": [more / less for more, less in zip(two, one, strict=True)],
        "2 processes / inline": [more / less for more, less in zip(apart, one, strict=True)],
    }
    medians = show("Ratios", ratios, ".3f")
    judge("a second inline worker", medians["2 inline workers / 1"], most=MOST_OF_ONE_WORKER)
    judge("preprocess in 2 processes", medians["2 processes / inline"], least=LEAST_OF_INLINE)
