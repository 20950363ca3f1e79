"""Is a load on somebody's service measured, archived and told?"""

import os
from pathlib import Path

from perfkit.measuring.experiment import open_run

QUICK = ("--seconds", "0.1")


def test_json_is_one_point_and_the_folder_of_its_run(perfkit, noop_server, bodies):
    ended = perfkit("load", noop_server.url, "--payloads", bodies, "--concurrency", "2", *QUICK, "--json")
    document = ended.document
    assert (ended.code, ended.err) == (3 if document["grade"] == "void" else 0, "")
    assert list(document)[:2] == ["schema", "simulated"]
    assert (document["schema"], document["simulated"], document["settings"]) == (1, False, {})
    run = open_run(Path(document["folder"]))
    assert run.folder.parent == Path("perfkit-runs")
    assert {name: document[name] for name in run.point} == dict(run.point)


def test_a_person_gets_a_table_with_the_load_and_the_place(perfkit, noop_server, bodies, tmp_path):
    path = f"{noop_server.url}/predict"
    ended = perfkit(
        *("load", path, "--payloads", bodies, "--rate", "100", "--set", "arrivals=constant", *QUICK, "--out", "mine")
    )
    lines = ended.out.splitlines()
    assert (ended.code in (0, 3), ended.err) == (True, "")  # 3: the machine was too busy to send on time
    assert lines[0].strip() == f"open loop, 100 req/s · {path}"
    assert lines[-1] == f"saved in mine/{os.listdir(tmp_path / 'mine')[0]}"
    assert open_run(Path(lines[-1].removeprefix("saved in "))).point["load"]["arrivals"] == "constant"


def test_a_load_that_nobody_answers_is_void_and_exits_with_3(perfkit, noop_server, bodies):
    ended = perfkit("load", f"{noop_server.url}/wrong/path", "--payloads", bodies, *QUICK, "--json")
    assert (ended.code, ended.document["grade"]) == (3, "void")
    assert list(ended.document["errors"]) == ["http_404"]


def test_a_load_beside_another_is_measured_at_the_same_time_and_told_apart(perfkit, noop_server, bodies):
    flood = "rate_rps=100,arrivals=constant,lane=offline"
    words = ("load", noop_server.url, "--payloads", bodies, "--concurrency", "1", "--set", "lane=online")
    ended = perfkit(*words, "--beside", flood, *QUICK, "--json")
    first, (second,) = ended.document, ended.document["beside"]
    assert (ended.code in (0, 3), ended.err) == (True, "")
    assert (first["load"]["loop"], first["load"]["lane"]) == ("closed", "online")
    assert (second["load"]["loop"], second["load"]["rate_rps"], second["load"]["lane"]) == ("open", 100.0, "offline")
    assert second["load"]["payloads"] == str(bodies)
    assert open_run(Path(first["folder"])).folder != open_run(Path(second["folder"])).folder


def test_a_load_beside_another_that_cannot_be_read_is_refused_in_one_line(perfkit, noop_server, bodies):
    ended = perfkit("load", noop_server.url, "--payloads", bodies, "--beside", "speed=3", *QUICK)
    assert (ended.code, ended.line.startswith("perfkit: unknown setting load.speed; known")) == (2, True)


def test_a_goal_that_is_out_of_reach_says_what_it_would_take_and_exits_with_5(perfkit, noop_server, bodies):
    words = ("load", noop_server.url, "--payloads", bodies, "--rate", "50", "--set", "arrivals=constant")
    ended = perfkit(*words, "--until", "p99:0.01%", "--seconds", "0.2", "--most-seconds", "0.5", "--json")
    document = ended.document
    assert (ended.code, ended.err) == (3 if document["grade"] == "void" else 5, "")
    assert (document["until"]["reached"], document["until"]["target_ratio"]) == (False, 0.0001)
    assert document["grade"] == "void" or document["until"]["needs_s"] > 5


def test_a_goal_that_cannot_be_read_is_wrong_use(perfkit, noop_server, bodies):
    ended = perfkit("load", noop_server.url, "--payloads", bodies, "--until", "p99")
    assert (ended.code, ended.line.startswith("perfkit: --until is 'p99'; write a quantile")) == (2, True)


def test_replicates_are_told_one_by_one_with_the_spread_between_them(perfkit, noop_server, bodies):
    words = ("load", noop_server.url, "--payloads", bodies, "--concurrency", "2", "--replicates", "2", *QUICK)
    document = perfkit(*words, "--json").document
    assert (document["schema"], document["simulated"], document["fresh_processes"]) == (1, False, False)
    assert len(document["replicates"]) == len({one["folder"] for one in document["replicates"]}) == 2
    assert set(document["between_runs"]) == {"throughput_rps", "p50_s", "p95_s", "p99_s"}
    told = perfkit(*words).out
    assert "between runs, the same process" in told


def test_a_server_setting_beside_a_url_is_refused(perfkit, noop_server, bodies):
    ended = perfkit("load", noop_server.url, "--model", "noop", "--payloads", bodies)
    assert (ended.code, ended.line.startswith("perfkit: --model belongs to the server")) == (2, True)
