"""Do the pictures show what they are given, and say what is missing?"""

import json

import pytest

from perfkit import ClosedLoop, launch, measure
from perfkit import scan as perfkit_scan
from perfkit.errors import ConfigError
from perfkit.measuring.analysis.flame import flame_data
from perfkit.measuring.collectors.pyspy import MODES
from perfkit.measuring.scanning.grid import Scan
from perfkit.showing.notebook.views import curve, flame, gpu, heat, ledger, timeline


def traces(chart):
    """The traces of a chart with their points."""
    return json.loads(chart.figure)["data"]


def test_the_flame_of_a_run_is_its_recorded_stacks(profiled_run):
    manifest = profiled_run.stored.manifest
    expected = flame_data(profiled_run.stacks(), manifest.title, manifest.simulated)
    assert json.loads(flame(profiled_run).data) == expected


def test_a_run_without_stacks_says_how_to_record_them(scan):
    with pytest.raises(ConfigError, match=r"run 000 holds no stacks, because .* perfkit\.flame\(service\)"):
        flame(scan[1])


def test_something_without_a_flame_graph_is_refused_by_name(scan):
    with pytest.raises(ConfigError, match="flame is given a Scan; it takes a service, a profiled run or a tour"):
        flame(scan)


def test_a_service_is_profiled_first(server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    recordings = json.loads(flame(server, ClosedLoop(concurrency=2), seconds=0.3).data)["recordings"]
    assert [recording["mode"] for recording in recordings] == sorted(MODES)
    assert "model-0" in recordings[-1]["threads"]


def test_the_curve_holds_the_throughput_of_every_point(scan):
    points = next(
        trace for trace in traces(curve(scan)) if trace["name"] == "throughput" and trace["mode"] == "markers"
    )
    assert points["y"] == [point["throughput_rps"]["value"] for point in scan.points]


def test_several_scans_of_one_setting_make_one_picture(scan):
    both = {"morning": scan, "evening": scan}
    assert {trace["name"] for trace in traces(curve(both))} >= {"morning", "evening"}
    bars = {bar for trace in traces(ledger(both)) for bar in trace["y"]}
    assert {bar.partition(",")[0] for bar in bars} == {"morning", "evening"}


def test_scans_of_different_settings_make_no_picture(scan, monkeypatch):
    other = Scan(stored=scan.stored)
    points = [{**point, "varied": {"batch.max_size": 1}} for point in scan.points]
    with monkeypatch.context() as patch:
        patch.setattr(Scan, "points", property(lambda self: points if self is other else self.stored.header.points))
        with pytest.raises(ConfigError, match=r"the scans vary batch\.max_size, workers; give scans of one"):
            curve({"a": scan, "b": other})


def test_the_ledger_of_a_run_adds_up_to_its_stages(profiled_run):
    stages_s = profiled_run.point["stages_s"]
    total_ms = sum(sum(trace["x"]) for trace in traces(ledger(profiled_run)))
    assert total_ms == pytest.approx(sum(stages_s.values()) * 1e3)


def test_a_grid_is_shown_as_a_heat_map(server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    axes = {"workers": [1, 2], "batch.max_size": [1, 4]}
    grid = perfkit_scan(server, axes, load=ClosedLoop(concurrency=2), seconds=0.2)
    (cells,) = traces(heat(grid))
    assert (cells["y"], cells["x"]) == (["1", "2"], ["1", "4"])
    measured = [point["throughput_rps"]["value"] for point in grid.points]
    assert [rate for row in cells["z"] for rate in row] == measured


def test_a_scan_of_one_setting_is_no_heat_map(scan):
    with pytest.raises(ConfigError, match="takes a grid of two settings"):
        heat(scan)


def test_runs_are_shown_over_time_by_their_labels(scan):
    shown = [trace["name"] for trace in traces(timeline({"first": scan.run(0), "second": scan.run(1)}))]
    assert list(dict.fromkeys(shown))[:2] == ["first", "second"]


def test_a_run_without_a_gpu_says_why_there_is_no_picture(scan, monkeypatch):
    with pytest.raises(ConfigError, match=r"run 000 holds no GPU series; .+"):
        gpu(scan[1])


def test_a_simulated_devices_meters_are_the_gpus_picture(tmp_path):
    with launch(model="simulated:s003-threads") as service:
        run = measure(service, ClosedLoop(concurrency=2), seconds=0.5, out=tmp_path)
    drawn = json.loads(gpu(run).figure)
    names = {trace["name"] for trace in drawn["data"]}
    assert names == {"at least one kernel ran", "multiprocessors that worked", "memory used"}
    assert drawn["layout"]["title"]["text"].endswith("GPU over time (simulated)")
