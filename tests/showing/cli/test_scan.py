"""Is a scan from the shell the same as from Python, in figures for scripts and in a table for people?"""

import os
import re
from pathlib import Path

from perfkit.measuring.archive.storedscan import load_scan
from perfkit.measuring.scanning.grid import open_scan_results

QUICK = ("--seconds", "0.1", "--rounds", "1")


def test_json_is_one_document_and_the_only_thing_printed(perfkit):
    words = ("scan", "--model", "noop", "--vary", "workers=2,1", "--concurrency", "4", *QUICK, "--json")
    ended = perfkit(*words)
    document, points = ended.document, ended.points
    assert list(document)[:2] == ["schema", "simulated"]
    assert set(document) == {"schema", "simulated", "points", "knee", "knee_estimates", "fits", "best", "folder"}
    assert [point["varied"] for point in points] == [{"workers": 2}, {"workers": 1}]
    assert {point["load"]["concurrency"] for point in points} == {4}
    assert [point["certificate"]["grade"] for point in points] == [point["grade"] for point in points]
    assert os.listdir("perfkit-runs") == [os.path.basename(document["folder"])]
    assert document == open_scan_results(Path(document["folder"])).to_json()


def test_a_person_gets_a_table_the_decisive_reasons_the_advice_and_the_place(perfkit, noop_server, bodies, tmp_path):
    ended = perfkit(
        *("scan", "--url", noop_server.url, "--payloads", bodies, "--vary", "concurrency=1,2", *QUICK, "--out", "mine")
    )
    lines = ended.out.splitlines()
    assert ended.err == ""
    assert lines[0].strip() == "service · closed loop"
    assert lines[2].split() == ["concurrency", "req/s", "P50", "P95", "P99", "batch", "wait", "cores", "grade"]
    advice = [line for line in lines if line.startswith(("Recommended: concurrency ", "No point is fit to be recomm"))]
    assert len(advice) == 1
    assert any(line.startswith(("What limits it: no USL fit: ", "No USL fit and no bounds: ")) for line in lines)
    assert lines[-1] == "saved in mine"
    assert len(load_scan(tmp_path / "mine").header.points) == 2


def test_a_simulated_scan_says_so_to_scripts_and_to_people(perfkit):
    words = ("scan", "--model", "simulated:s001-a10", *QUICK, "--out", "mine")
    ended = perfkit(*words)
    assert ended.out.splitlines()[0].strip() == "simulated:s001-a10 · closed loop, 8 users · simulated"
    again = perfkit(*words, "--resume", "--json")
    assert (again.document["simulated"], [point["simulated"] for point in again.points]) == (True, [True])


def test_the_real_model_is_scanned_and_batches_of_mixed_lengths_show_their_padding(perfkit):
    words = ("scan", "--model", "minilm", "--set", "workers=2", "--vary", "batch.max_size=1,8", "--concurrency", "16")
    turns = ("--seconds", "1", "--rounds", "1")  # time for some batches one after the other
    points = perfkit(*words, "--payloads", "texts/mixed.jsonl", *turns, "--json").points
    alone, batched = points
    assert (alone["padding_ratio"], alone["errors"], batched["errors"]) == (0.0, {}, {})
    assert batched["padding_ratio"] > 0.1
    assert batched["stages_s"]["preprocess"] > 0 < batched["stages_s"]["compute"]


def test_an_open_loop_with_settings_from_a_file_and_from_flags(perfkit, tmp_path):
    (tmp_path / "server.toml").write_text('model = "noop"\nworkers = 3\n[batch]\nmax_size = 2\n')
    words = ("scan", "--settings", "server.toml", "--set", "workers=2", "--vary", "batch.max_delay_s=0.001")
    points = perfkit(*words, "--rate", "100", "--set", "load.arrivals=constant", *QUICK, "--json").points
    settings = [point["settings"] for point in points]
    assert {(one["model"], one["workers"], one["batch"]["max_size"]) for one in settings} == {("noop", 2, 2)}
    assert [one["batch"]["max_delay_s"] for one in settings] == [0.001]
    loads = [point["load"] for point in points]
    assert {(load["loop"], load["rate_rps"], load["arrivals"]) for load in loads} == {("open", 100.0, "constant")}


def test_a_scan_whose_points_are_all_void_exits_with_3(perfkit, noop_server, tmp_path):
    """Every request is refused, so nothing was answered."""
    (tmp_path / "wrong.jsonl").write_text('{"no_input": 1}\n')
    ended = perfkit("scan", "--url", noop_server.url, "--payloads", "wrong.jsonl", *QUICK, "--out", "mine")
    assert ended.code == 3
    assert "the only setting: void: " in ended.out
    assert re.search(r"the only setting: failed of [\d,]+ requests: http_400: [\d,]+\n", ended.out)
    assert "No point is fit to be recommended" in ended.out


def test_another_plan_is_not_resumed(perfkit, noop_server, bodies):
    words = ("scan", "--url", noop_server.url, "--payloads", bodies, "--out", "mine", *QUICK)
    assert perfkit(*words).err == ""
    other = perfkit(*words, "--resume", "--seed", "5")
    assert (other.code, other.out) == (2, "")
    assert "another plan: points[0].load.seed is 5, there 0; seed is 5, there 0." in other.line
    again = perfkit(*words)
    assert again.line == "perfkit: mine holds scan.json already; go on with it by --resume, or choose another --out"


def test_a_latency_budget_reaches_the_best_point_and_one_estimator_of_the_knee(perfkit):
    words = ("scan", "--model", "noop", "--vary", "workers=1,2,3", *QUICK, "--out", "mine", "--json")
    without = perfkit(*words).document
    within = perfkit(*words, "--resume", "--p99", "1e-9").document
    scan = open_scan_results(Path("mine"))
    assert without["knee_estimates"] == scan.scaling().to_json()["knee_estimates"]
    assert within["knee_estimates"] == scan.scaling(1e-9).to_json()["knee_estimates"]
    assert within["best"] is None
    assert within["points"] == without["points"]
