"""Do the files and reports of several generators become one, with every request once and no averaged percentile?"""

import contextlib

import pytest

from perfkit.errors import ConfigError
from perfkit.measuring.load import client
from perfkit.measuring.load.lateness import Lateness
from perfkit.measuring.load.loops import ClosedLoop, OpenLoop
from perfkit.measuring.load.merging import merge_reports, read_all_samples

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture
def share_load(serve, always, make_spec, tmp_path):
    """Run a load by all its generators; the merged report, the merged samples, and what the service got."""

    def run(load, seconds, seed=5):
        for left in tmp_path.glob("*.gate"):
            left.unlink()
        service = serve(always(OK))
        specs = [
            make_spec(
                service.port,
                load,
                seconds,
                seed=seed,
                part=part,
                samples=tmp_path / f"{part}.samples",
                report=tmp_path / f"{part}.report.json",
            )
            for part in range(load.generators)
        ]
        with contextlib.ExitStack() as stops:
            generators = client.start_together(specs, tmp_path, stops)
            reports = [generator.report() for generator in generators]
        return merge_reports(reports), read_all_samples([spec.samples for spec in specs]), service.requests

    return run


def test_three_generators_send_the_requests_of_one_and_each_is_kept_once(share_load):
    one, alone, _ = share_load(OpenLoop(rate_rps=150), 1.0)
    three, together, received = share_load(OpenLoop(rate_rps=150, generators=3), 1.0)
    assert three["scheduled"] == one["scheduled"] == len(together["request_id"])
    assert sorted(together["request_id"]) == sorted(alone["request_id"]) == list(range(1, one["scheduled"] + 1))
    assert sorted(request.request_id for request in received) == sorted(together["request_id"])
    offsets = []
    for report, samples in ((one, alone), (three, together)):
        order = samples["request_id"].argsort()
        due_ns = samples["scheduled_ns"] - report["started_ns"]
        offsets.append([column[order] for column in (samples["request_id"], due_ns, samples["payload"])])
    assert all((first == second).all() for first, second in zip(*offsets, strict=True))
    assert (together["scheduled_ns"][1:] >= together["scheduled_ns"][:-1]).all()
    assert three["outcomes"] == {"ok": one["scheduled"]}
    assert sum(part["scheduled"] for part in three["generators"]) == one["scheduled"]
    assert "lateness_counts" not in three
    assert len({part["started_ns"] for part in three["generators"]}) == 1
    assert three["lateness_max_s"] == max(part["lateness_max_s"] for part in three["generators"])


def test_the_users_of_a_closed_loop_are_shared_and_numbered_apart(share_load):
    report, samples, received = share_load(ClosedLoop(concurrency=5, think_time_s=0.01, generators=2), 0.5)
    assert len(set(samples["request_id"])) == len(samples["request_id"]) == report["scheduled"] == len(received)
    assert [part["scheduled"] > 0 for part in report["generators"]] == [True, True]


def test_a_generator_that_cannot_start_ends_the_others_instead_of_keeping_them_waiting(serve, make_spec, tmp_path):
    load = OpenLoop(rate_rps=10, generators=2)
    bad = tmp_path / "bad.jsonl"
    bad.write_text("not json")
    places = [{"report": tmp_path / f"{part}.json", "samples": tmp_path / f"{part}.s"} for part in range(2)]
    specs = [make_spec(1, load, 60, part=part, payloads=bad, **place) for part, place in enumerate(places)]
    with contextlib.ExitStack() as stops:
        generators = client.start_together(specs, tmp_path, stops)
        with pytest.raises(ConfigError, match="line 1 of payload file"):
            generators[0].report()


def report_of(late_us, **changes):
    lateness = Lateness()
    for one in late_us:
        lateness.add(one * 1000)
    same = {
        "started_ns": 10,
        "ended_ns": 100,
        "drained_ns": 110,
        "was_stopped": False,
        "scheduled": len(late_us),
        "sent": len(late_us),
        "held": 0,
        "outcomes": {"ok": len(late_us)},
        "errors": {},
        "faults": {},
        "retries": None,
        "lateness_p50_s": lateness.quantile_s(0.5),
        "lateness_p99_s": lateness.quantile_s(0.99),
        "lateness_max_s": lateness.max_s,
        "lateness_counts": lateness.counts(),
        "offered_rps": 50.0,
        "achieved_rps": 50.0,
        "achieved_ratio": 1.0,
        "cpu_s": 0.1,
        "wall_s": 1.0,
        "cpu_ratio": 0.05,
        "core_ratio": 0.1,
        "usable_cores": 2,
        "cpus": [1],
        "nice": 0,
        "not_placed": [],
    }
    return same | changes


def test_lateness_is_that_of_all_requests_together_not_a_mean_of_percentiles():
    many, few = [10] * 900, [5000] * 100
    merged = merge_reports([report_of(many), report_of(few)])
    pooled = Lateness()
    for late in many + few:
        pooled.add(late * 1000)
    assert [merged[f"lateness_{name}_s"] for name in ("p50", "p99", "max")] == [
        pooled.quantile_s(0.5),
        pooled.quantile_s(0.99),
        pooled.max_s,
    ]
    assert merged["lateness_p50_s"] < 0.001 < merged["lateness_p99_s"]


def test_counts_add_up_and_the_process_that_fell_behind_counts_for_the_rate():
    retries = {"retried": 2, "over_budget": 1, "held_back": 0, "errors": {"http_503": 2}}
    slow = report_of([1] * 3, achieved_ratio=0.5, drained_ns=300, cpu_s=0.3, wall_s=2.0, errors={"http_503": 1})
    merged = merge_reports([report_of([1] * 2, retries=retries), slow | {"retries": retries, "cpus": [0]}])
    names = ["scheduled", "drained_ns", "errors", "retries", "offered_rps", "achieved_rps", "cpus", "core_ratio"]
    told = {name: merged[name] for name in names}
    assert told == {
        "scheduled": 5,
        "drained_ns": 300,
        "errors": {"http_503": 1},
        "retries": {"retried": 4, "over_budget": 2, "held_back": 0, "errors": {"http_503": 4}},
        "offered_rps": 100.0,
        "achieved_rps": 50.0,
        "cpus": [0, 1],
        "core_ratio": 0.2,
    }


def test_one_generator_keeps_its_own_report():
    alone = report_of([1, 2, 3])
    merged = merge_reports([alone])
    assert merged == {name: value for name, value in alone.items() if name != "lateness_counts"}
