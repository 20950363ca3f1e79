"""How much does a chart send to the page, and how often?"""

import json
import threading

import plotly.graph_objects as go

from perfkit.clock import NS_PER_S, ManualClock
from perfkit.showing.notebook.chart import Chart, Flame, runtime


def curve(*values):
    """A figure of one line."""
    return go.Figure(go.Scatter(y=list(values)))


def drawn(chart):
    """The values that the chart's state holds."""
    return json.loads(chart.get_state()["figure"])["data"][0]["y"]


def test_plotly_goes_to_the_page_once_and_charts_only_refer_to_it():
    charts = [Chart(curve(1, 2)), Chart(curve(3))]
    states = [chart.get_state() for chart in charts]
    assert [state["runtime"] for state in states] == [f"IPY_MODEL_{runtime().model_id}"] * 2
    assert all(len(json.dumps(state)) < 50_000 for state in states)
    assert "plotly.js v" in runtime().get_state()["_esm"]


def test_a_page_that_connects_late_finds_the_latest_figure_in_the_state(clock):
    chart = Chart(curve(1, 2), clock)
    clock.advance(NS_PER_S)
    chart.draw(curve(5))
    assert drawn(chart) == [5]


def test_figures_are_at_least_a_fifth_of_a_second_apart_and_none_is_lost(clock: ManualClock):
    chart = Chart(curve(0), clock)
    painter = threading.Thread(target=lambda: [chart.draw(curve(1)), chart.draw(curve(2))], daemon=True)
    painter.start()
    seen = []
    while painter.is_alive():
        seen.append((clock.now_ns(), drawn(chart)))
        clock.advance(NS_PER_S // 20)
        painter.join(0.02)
    firsts = [next(at for at, values in seen if values == [value]) for value in (0, 1)]
    assert firsts[1] - firsts[0] >= NS_PER_S // 5
    assert drawn(chart) == [2]


def test_a_flame_carries_its_data_as_state():
    flame = Flame({"schema": 1, "recordings": []})
    assert json.loads(flame.get_state()["data"]) == {"schema": 1, "recordings": []}
    assert "drawFlame" in flame.get_state()["_esm"]
