"""Do the commands compare and gate answer with the right exit code, in figures for scripts and words for people?"""

import xml.etree.ElementTree as ElementTree

import pytest

from perfkit.errors import ConfigError
from perfkit.measuring.archive.folder import load_run
from perfkit.showing.cli import gate

QUICK = ("--model", "noop", "--seconds", "0.2")
CANNOT_TELL = (("inconclusive", 5), ("void", 3))  # one run a side shows nothing; a busy machine may void it
EXIT = {"faster": 0, "no difference": 0, "slower": 1, "mixed": 1, "inconclusive": 5, "void": 3}


def test_two_settings_are_measured_and_the_answer_is_one_document(perfkit, tmp_path):
    ended = perfkit("compare", "default", "workers=2,batch.max_size=2", *QUICK, "--pairs", "1", "--out", "it", "--json")
    document = ended.document
    assert list(document)[:2] == ["schema", "simulated"]
    assert (document["a"], document["b"], document["interleaved"]) == ("default", "workers=2,batch.max_size=2", True)
    assert [one["metric"] for one in document["metrics"]] == ["throughput_rps", "p50_s", "p95_s", "p99_s"]
    (ours,), (theirs,) = document["runs"]["a"], document["runs"]["b"]
    runs = [load_run(tmp_path / "it" / arm / "000") for arm in ("a", "b")]
    assert [run.manifest.id for run in runs] == [ours["run_id"], theirs["run_id"]]
    assert [run.manifest.settings["batch"]["max_size"] for run in runs] == [1, 2]
    assert (ended.code, ended.err) == (EXIT[document["verdict"]], "")
    again = perfkit("compare", "it/a", "it/b", "--json")
    assert again.document["metrics"] == document["metrics"]
    shown = perfkit(
        "compare", "default", "workers=2,batch.max_size=2", *QUICK, "--pairs", "1", "--out", "it", "--resume"
    )
    assert shown.out.splitlines()[0] == document["claim"]
    assert "saved in it" in shown.out
    told = perfkit("runs", "show", "it")
    assert told.out.startswith("comparison ")
    assert told.out.splitlines()[-2:] == [document["claim"], "every byte is as saved"]
    assert perfkit("report", "it").code == 0
    page = (tmp_path / "it" / "report.html").read_text("utf-8")
    assert f"<title>workers=2,batch.max_size=2 against default: {document['verdict']}</title>" in page
    assert ours["run_id"] in page
    assert theirs["run_id"] in page


def test_a_baseline_is_recorded_and_a_candidate_held_against_it(perfkit, tmp_path):
    kept = perfkit("gate", "--record", "main", *QUICK, "--runs", "1", "--json")
    assert (kept.code, len(kept.document["runs"])) in ((0, 1), (3, 1))
    words = ("gate", "--baseline", "main", "--set", "workers=2", "--out", "change")
    ended = perfkit(*words, "--markdown", "summary.md", "--junit", "junit.xml", "--json")
    document = ended.document
    assert (document["answer"], ended.code) in CANNOT_TELL
    assert ended.err == ""
    assert {one["result"] for one in document["results"]} <= {"open"}
    assert document["comparison"]["interleaved"] is False
    assert (tmp_path / "summary.md").read_text("utf-8").startswith(f"### perfkit gate: {document['answer']}")
    suite = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert suite.get("tests") == str(len(document["results"]) + 1)
    only = perfkit("gate", "--baseline", "main", "--candidate", "change", "--metric", "throughput", "--json")
    assert [one["metric"] for one in only.document["comparison"]["metrics"]] == ["throughput_rps"]


def test_a_gate_measures_both_sides_in_turns_when_given_settings(perfkit, monkeypatch):
    plans = []

    def measure_plan(options, plan, rule):
        plans.append(plan)
        raise ConfigError("seen")

    monkeypatch.setattr(gate, "measure_plan", measure_plan)
    assert (
        perfkit("gate", "--against", "workers=3", "--set", "workers=2", *QUICK, "--runs", "4").line == "perfkit: seen"
    )
    (plan,) = plans
    assert (plan.a.label, plan.a.settings.workers) == ("workers=3", 3)
    assert (plan.b.label, plan.b.settings.workers) == ("candidate", 2)
    assert (plan.pairs, plan.seconds) == (4, 0.2)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("compare", "default", "nonsense"), "'nonsense' is no side of a comparison"),
        (("compare", "default", "nonsense=1"), "unknown setting nonsense"),
        (("compare", ".", "workers=2"), "is a folder of runs and the other side is not"),
        (("compare", "default", "default", "--resume"), "--resume needs --out DIR"),
        (("compare", "default", "default", "--margin", "x"), "'x' is no share; write 5% or 0.05"),
        (("compare", "default", "default", "--pairs", "0"), "pairs is 0"),
        (("compare", "one.toml", "default", "--settings", "two.toml"), "both name a file of settings"),
        (("gate",), "one of the arguments --record --baseline --against is required"),
        (("gate", "--baseline", "nothing"), "nothing holds no runs"),
        (("gate", "--record", "x", "--out", "y"), "--record names the folder itself"),
        (("gate", "--against", "default", "--candidate", "x"), "with --against both sides are measured now"),
        (("gate", "--record", "x", "--worse-than", "0"), "'0' is no share"),
        (("gate", "--record", "x", "--model", "noop", "--resume"), "x holds no runs"),
        (("gate", "--record", "x", "--model", "noop", "--runs", "0"), "runs is 0"),
    ],
)
def test_a_question_without_sense_is_refused_in_one_line(perfkit, words, says):
    ended = perfkit(*words)
    assert (ended.code, ended.out) == (2, "")
    assert says in ended.line


def test_a_sides_own_changes_win_over_common_ones_and_may_name_another_model(perfkit):
    import argparse

    from perfkit.showing.cli import compare
    from perfkit.showing.cli.sides import read_side

    parser = argparse.ArgumentParser()
    compare.add_arguments(parser)
    options = parser.parse_args(["x", "y", "--set", "workers=2", "--set", "load.think_time_s=1", "--concurrency", "3"])
    side = read_side("model=noop,server.workers=5,load.concurrency=4", options)
    assert (side.settings.model, side.settings.workers) == ("noop", 5)
    assert (side.load.concurrency, side.load.think_time_s) == (4, 1.0)
    assert read_side("default", options).settings.workers == 2


def test_an_archive_tells_its_history_and_its_snapshot(perfkit, noop_server, bodies, tmp_path):
    words = ("load", noop_server.url, "--payloads", bodies, "--seconds", "0.2", "--out", "archive")
    perfkit(*words)
    history = perfkit("runs", "history", "archive", "--metric", "p50", "--json")
    assert (history.code, list(history.document)[:2]) == (0, ["schema", "simulated"])
    assert [(one["metric"], one["change_points"]) for one in history.document["histories"]] == [("p50_s", [])]
    assert "no change of level" in perfkit("runs", "history", "archive").out
    snapshot = perfkit("runs", "snapshot", "archive", "--html", "it.html", "--markdown", "it.md", "--json")
    (row,) = snapshot.document["rows"]
    assert (row["model"], row["load"], row["runs"]) == ("service", "closed, 8 users", 1)
    assert "service" in (tmp_path / "it.html").read_text("utf-8")
    assert "service" in (tmp_path / "it.md").read_text("utf-8")
    assert "service" in perfkit("runs", "snapshot", "archive").out
