"""Does an archive tell at which run a service became worse, and how its versions stand side by side?"""

import dataclasses

import pytest

from perfkit.errors import ConfigError
from perfkit.measuring.analysis.compare.replicate import METRICS
from perfkit.measuring.archive.folder import save_run
from perfkit.measuring.archive.manifest import Manifest
from perfkit.measuring.comparing.history import histories, read_archive
from perfkit.measuring.comparing.snapshot import COLUMNS, snapshot_table
from perfkit.showing.report.snapshots import shown, to_html, to_markdown

THROUGHPUT = METRICS[0]


def run_of(number, rate=100.0, grade="sound", model="noop", **more):
    """A certified run as its manifest tells it."""
    quantile = {"value": 0.01, "low": None, "high": None}
    certificate = {
        "grade": grade,
        "throughput_rps": {"value": None if grade == "void" else rate, "low": None, "high": None},
        "latency_s": {"p50": quantile, "p95": quantile, "p99": {**quantile, "value": None}},
        "gpus": [],
        "cpu_cores_used": 0.5,
        "error_ratio": 0.0,
    }
    facts = {
        "settings": {"model": model, "workers": 2, "seed": number},
        "load": {"loop": "closed", "concurrency": 4, "seed": number},
        "environment": {"machine": "m", "cpu_model": "X9", "usable_cores": 2},
        "title": model,
        "certificate": certificate,
    }
    created = f"2026-01-01T{number // 60:02d}:{number % 60:02d}:00+00:00"
    return Manifest(id=f"run-{number}", created=created, simulated=False, **(facts | more))


def test_the_run_at_which_throughput_fell_is_named():
    runs = [run_of(number, 100 + number % 3) for number in range(20)]
    runs += [run_of(20 + number, 80 + number % 3) for number in range(20)]
    (history,) = histories(runs, THROUGHPUT)
    (point,) = history.got_worse
    assert (point.index, history.run_ids[point.index], len(history.values)) == (20, "run-20", 40)
    document = history.to_json()
    assert document["change_points"][0]["run"] == "run-20"
    assert document["change_points"][0]["shift"]["value_ratio"] == pytest.approx(-0.2, abs=0.01)


def test_a_gain_is_a_change_but_nothing_worse_and_for_latencies_up_is_worse():
    rising = [run_of(number, 100 if number < 20 else 130) for number in range(40)]
    (history,) = histories(rising, THROUGHPUT)
    assert (len(history.change_points), history.got_worse) == (1, ())
    slower = dataclasses.replace(history, metric=METRICS[1])
    assert slower.got_worse == history.change_points


def test_settings_loads_and_machines_have_histories_of_their_own_and_seeds_do_not():
    other = {"environment": {"machine": "n", "cpu_model": "X9", "usable_cores": 2}}
    runs = [run_of(0), run_of(1), run_of(2, model="mlp"), run_of(3, **other), run_of(4, grade="void")]
    found = list(histories(runs, THROUGHPUT))
    assert [(one.manifest.settings["model"], len(one.values), one.left_out) for one in found] == [
        ("noop", 2, 1),
        ("mlp", 1, 0),
        ("noop", 1, 0),
    ]
    assert [len(one.values) for one in histories(runs, METRICS[3])] == [0, 0, 0]


def test_runs_are_found_wherever_they_lie_and_a_broken_one_is_named(recorded, tmp_path):
    for place in ("here/one", "comparison/a/000", "scan/points/000"):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        save_run(tmp_path / place, recorded)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "run.json").write_text("{")
    archive = read_archive(tmp_path)
    assert len(archive.manifests) == 3
    assert [("broken" in line, "not whole JSON" in line) for line in archive.unreadable] == [(True, True)]
    with pytest.raises(ConfigError, match="is no folder"):
        read_archive(tmp_path / "nothing")


def test_a_snapshot_has_a_row_for_each_version_setting_and_machine():
    runs = [
        run_of(0, 90.0, source={"commit": "a" * 40, "dirty": False}),
        run_of(1, 110.0, source={"commit": "a" * 40, "dirty": False}),
        run_of(2, 50.0, source={"commit": "b" * 40, "dirty": True}),
        run_of(3, grade="void", source={"commit": "b" * 40, "dirty": True}),
        run_of(4, 10.0, load={"loop": "open", "rate_rps": 20.0}),
    ]
    table = snapshot_table(runs)
    assert tuple(table.columns) == COLUMNS
    rows = table.set_index("version")[["throughput_rps", "spread_ratio", "users", "runs", "void"]]
    assert rows.loc["aaaaaaaaaa"].tolist() == [100.0, pytest.approx(0.2), 4.0, 2, 0]
    assert rows.loc["bbbbbbbbbb+"].astype(object).where(rows.loc["bbbbbbbbbb+"].notna(), None).tolist() == [
        50.0,
        None,
        4.0,
        2,
        1,
    ]
    assert table["load"].tolist() == ["closed, 4 users", "closed, 4 users", "open, 20.0 req/s"]
    assert set(table["hardware"]) == {"2 × X9"}
    assert set(table["settings"]) == {"workers=2"}


def test_a_snapshot_reads_with_units_and_names_cannot_break_the_page():
    texts = shown(snapshot_table([run_of(0, model="a|<b>", grade="void"), run_of(1, model="noop")]))
    assert texts.loc[texts["model"] == "a|<b>", ["throughput", "P50", "runs", "settings"]].to_numpy().tolist() == [
        ["–", "–", "1 (1 void)", "workers=2"]
    ]
    markdown, page = to_markdown(texts), to_html(texts)
    assert "a\\|&lt;b&gt;" in markdown
    assert len(markdown.splitlines()) == 4
    assert "<b>" not in page
    assert "a|&lt;b&gt;" in page
