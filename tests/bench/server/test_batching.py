"""What does the MLP of 33 MB gain from batching and from a second worker, beside its peers and its own ceiling?"""

import json
from pathlib import Path

import pytest

pytestmark = [pytest.mark.bench, pytest.mark.timeout(1800)]

ROUNDS = 5
SECONDS = 3
CONCURRENCY = 32
MAX_SIZE = 16
LEAST_OF_LITSERVE = 2.0
LEAST_OF_FASTAPI = 1.3
LEAST_OF_PYTRITON = 2.0
LEAST_OF_CEILING = 0.65
MOST_P50_WITH_BATCHING = 1.2
LEAST_OF_ONE_WORKER = 1.7
LEAST_CORES = 1.8
WORKERS = (1, 2)
"""Every contestant shows the better of the two: how many workers pay on two cores differs from server to server."""
SETTING = {"batch": {"max_size": MAX_SIZE, "max_delay_s": 0.004}, "pinning": {"policy": "workers"}, "worker_nice": 15}
"""The window is the peers' too: as long as all users need to come back, so that batches are full."""
CEILING = Path(__file__).with_name("offline_ceiling.py")
BODY = (Path(__file__).parents[3] / "data/numbers/mlp.jsonl").read_text().splitlines()[0]


def _judge_beside(name, played, show, judge, least):
    """Our best number of workers beside the peer's best, round by round."""
    _show_throughput(show, played)

    def best_rps(phases, who):
        return max(phase.throughput_rps for label, phase in phases.items() if label.startswith(who))

    ratios = [best_rps(phases, "perfkit") / best_rps(phases, name) for phases in played]
    judge(f"throughput of {name}", _show_ratio(show, f"perfkit / {name}", ratios), least=least)


def _label(name, workers):
    return f"{name}, {workers} worker{'s' * (workers - 1)}"


def _show_throughput(show, played):
    figures = {name: [phases[name].throughput_rps for phases in played] for name in played[0]}
    show(f"Throughput, req/s, MLP, {CONCURRENCY} users, max batch {MAX_SIZE}", figures, ".0f")


def _show_ratio(show, name, ratios):
    return show("Ratios", {name: ratios}, ".3f")[name]


@pytest.fixture
def play_ours(start_perfkit, drive):
    """Our phases of a round."""

    def play():
        phases = {}
        for workers in WORKERS:
            with start_perfkit("mlp", workers=workers, **SETTING) as (ours, _):
                phases[_label("perfkit", workers)] = drive(ours, CONCURRENCY, SECONDS)
        return phases

    return play


@pytest.mark.parametrize(
    ("name", "variable", "script", "least"),
    [
        ("LitServe", "PERFKIT_PEER_LITSERVE", "lit_serving", LEAST_OF_LITSERVE),
        ("FastAPI batching", "PERFKIT_PEER_FASTAPI", "fastapi_batching", LEAST_OF_FASTAPI),
    ],
)
def test_throughput_beside_a_peer(name, variable, script, least, start_peer, play_ours, drive, rounds, show, judge):
    def play():
        phases = {}
        for workers in WORKERS:
            with start_peer(variable, script, "mlp", str(MAX_SIZE), str(workers)) as peer:
                phases[_label(name, workers)] = drive(peer, CONCURRENCY, SECONDS)
        return phases | play_ours()

    _judge_beside(name, rounds(play, ROUNDS), show, judge, least)


def test_throughput_beside_triton(start_peer, play_ours, drive, rounds, show, judge):
    row = json.loads(BODY)["input"]
    tensor = {"name": "input", "shape": [1, len(row)], "datatype": "FP32", "data": row}
    asked = {"path": "/v2/models/network/infer", "body": json.dumps({"inputs": [tensor]})}

    def play():
        phases = {}
        for workers in WORKERS:
            words = ("triton_serving", "mlp", str(MAX_SIZE), str(workers))
            with start_peer("PERFKIT_PEER_PYTRITON", *words, **asked) as peer:
                phases[_label("pytriton", workers)] = drive(peer, CONCURRENCY, SECONDS)
        return phases | play_ours()

    _judge_beside("pytriton", rounds(play, ROUNDS), show, judge, LEAST_OF_PYTRITON)


def test_throughput_beside_the_ceiling_of_the_model_alone(start_perfkit, run_python, drive, rounds, show, judge):
    ceilings_rps = {}

    def measure_ceiling_rps():
        return json.loads(run_python(CEILING, str(MAX_SIZE), "1.5"))["items_per_s"]

    def play():
        before_rps = measure_ceiling_rps()
        phase = drive(ours, CONCURRENCY, SECONDS)
        ceilings_rps[phase] = (before_rps + measure_ceiling_rps()) / 2
        return {"perfkit": phase}

    with start_perfkit("mlp", batch={"max_size": MAX_SIZE}) as (ours, _):
        played = rounds(play, ROUNDS)
    _show_throughput(show, played)
    alone_rps = [ceilings_rps[phases["perfkit"]] for phases in played]
    show(f"The model alone, items/s at batch {MAX_SIZE}, one thread", {"offline": alone_rps}, ".0f")
    ratios = [phases["perfkit"].throughput_rps / rps for phases, rps in zip(played, alone_rps, strict=True)]
    judge("throughput of the ceiling", _show_ratio(show, "perfkit / offline", ratios), least=LEAST_OF_CEILING)


def test_a_user_who_is_alone_does_not_pay_for_batching(start_perfkit, drive, rounds, show, judge):
    with start_perfkit("mlp") as (ours, service):

        def play():
            phases = {}
            for name, size in (("off", 1), ("on", MAX_SIZE)):
                service.configure({"batch": {"max_size": size}})
                phases[name] = drive(ours, 1, SECONDS)
            return phases

        played = rounds(play, ROUNDS)
    figures = {name: [phases[name].p50_s * 1e3 for phases in played] for name in ("off", "on")}
    show("P50, ms, MLP, one user, batching off and on", figures, ".3f")
    ratios = [phases["on"].p50_s / phases["off"].p50_s for phases in played]
    judge("P50 with batching", _show_ratio(show, "on / off", ratios), most=MOST_P50_WITH_BATCHING)


def test_a_second_worker(start_perfkit, drive, rounds, show, judge):
    def too_few_cores(phases):
        cores = phases["2 workers"].cores
        return f"2 workers used {cores:.2f} cores of at least {LEAST_CORES}" if cores < LEAST_CORES else None

    with start_perfkit("mlp", pinning={"policy": "workers"}) as (ours, service):

        def play():
            phases = {}
            for workers in (1, 2):
                service.configure({"workers": workers})
                phases[f"{workers} worker{'s' * (workers - 1)}"] = drive(ours, CONCURRENCY, SECONDS)
            return phases

        played = rounds(play, ROUNDS, too_few_cores)
    throughput = {name: [phases[name].throughput_rps for phases in played] for name in played[0]}
    cores = {f"{name}, cores": [phases[name].cores for phases in played] for name in played[0]}
    show(f"Throughput, req/s, MLP, {CONCURRENCY} users, no batching", throughput, ".0f")
    show("Cores used", cores, ".2f")
    ratios = [phases["2 workers"].throughput_rps / phases["1 worker"].throughput_rps for phases in played]
    judge("throughput of one worker", _show_ratio(show, "2 workers / 1 worker", ratios), least=LEAST_OF_ONE_WORKER)
