"""Do the panel's knobs reach the service, and does its chart show what was archived?"""

import json

import pytest

from perfkit.measuring.phase import Progress
from perfkit.showing.notebook.live import archived_replies, live_readings
from perfkit.showing.notebook.panel import Panel


@pytest.fixture(scope="module")
def panel(tmp_path_factory):
    """A panel of the no-op model that has measured once, with two workers and a window of 3 ms."""
    panel = Panel("noop", seconds=1.2, out=tmp_path_factory.mktemp("runs"))
    panel._sliders["workers"].value = 2
    panel._sliders["batch.max_size"].value = 4
    panel._sliders["batch.max_delay_s"].value = 3
    panel._sliders["concurrency"].value = 5
    panel.start()
    panel.wait()
    yield panel
    panel.close()


def drawn(panel):
    """The chart: its title, and the values of each line."""
    figure = json.loads(panel._live.chart.figure)
    return figure["layout"]["title"]["text"], {trace["name"]: trace["y"] for trace in figure["data"]}


def test_the_sliders_set_the_service_and_the_load(panel):
    point = panel.wait().point
    settings = point["settings"]
    assert (settings["workers"], settings["batch"]["max_size"], settings["batch"]["max_delay_s"]) == (2, 4, 0.003)
    assert point["load"]["concurrency"] == 5


def test_what_is_drawn_at_the_end_is_the_archived_run(panel):
    run = panel.wait()
    manifest = run.stored.manifest
    readings = live_readings(archived_replies(run), manifest.gauges, manifest.rounds[0]["ended_ns"])
    title, lines = drawn(panel)
    good = (run.table("requests")["end_state"] == "ok").sum()
    assert title == f"noop, workers 2, max batch 4, window 3.00 ms, users 5: {good:,} replies"
    assert lines["throughput"] == [reading.get("throughput_rps") for reading in readings]
    assert lines["queued requests"] == [reading.get("queued") for reading in readings]


def test_the_result_stands_below_the_chart(panel):
    assert f"Archived in {panel.wait().folder}" in panel._result.value


def test_buttons_tell_what_can_be_done(panel):
    found = []
    for state in ("starting the service", "running", "stopping", ""):
        panel.show_state(state)
        found.append((panel._start.disabled, panel._stop.disabled))
    assert found == [(True, True), (True, False), (True, True), (False, True)]


def test_an_error_is_text_and_the_next_slider_or_start_takes_it_away(panel):
    panel.show_error("<b>no</b>")
    assert panel._error.value == "<span class='error' role='alert'>&lt;b&gt;no&lt;/b&gt;</span>"
    panel._sliders["workers"].value = 1
    assert panel._error.value == ""


def test_a_chart_that_fails_does_not_end_the_run(panel, tmp_path):
    broken = Progress(elapsed_s=1.0, total_s=2.0, samples=(tmp_path,), stats=None)
    panel.show_progress(broken)
    assert "the live chart has stopped (IsADirectoryError" in panel._error.value


def test_a_topology_without_batches_has_no_knobs_for_them():
    sliders = Panel("simulated:s003-threads")._sliders
    disabled = {name for name, slider in sliders.items() if slider.disabled}
    assert disabled == {"batch.max_size", "batch.max_delay_s"}


def test_the_panel_is_shown_as_a_widget(panel):
    data = panel._repr_mimebundle_()
    bundle = data[0] if isinstance(data, tuple) else data
    assert "application/vnd.jupyter.widget-view+json" in bundle
