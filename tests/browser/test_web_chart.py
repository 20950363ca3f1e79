"""Does a chart draw, follow its page, and keep what the reader did to it?"""

import json

import plotly.graph_objects as go
import pytest

pytestmark = pytest.mark.browser

DRAW = """
  (figure) => {
    globalThis.chart = drawChart(document.getElementById("picture"), figure, { description: "a curve" });
    return chart.drawn;
  }
"""


def draw(visited, figure):
    """Draw a figure into the page and wait until it is there."""
    visited.page.evaluate(DRAW, figure.to_json())


def curve(values):
    """A small figure in the axis colours of the page."""
    return go.Figure(go.Scatter(x=[1, 2, 3], y=values), layout={"title": {"text": "P99"}, "yaxis": {"range": [0, 10]}})


def drawn_values(visited):
    """The y values that plotly holds for the first trace."""
    return json.loads(
        visited.page.evaluate("JSON.stringify([...document.querySelector('.js-plotly-plot')._fullData[0].y])")
    )


def text_color(visited):
    """The colour of the chart's title."""
    return visited.page.evaluate("getComputedStyle(document.querySelector('.gtitle')).fill")


def test_a_figure_is_drawn_with_its_data_and_nothing_is_fetched(visit, chart_page):
    visited = visit(chart_page)
    draw(visited, curve([1, 5, 3]))
    assert visited.page.locator(".main-svg").count() > 0
    assert drawn_values(visited) == [1, 5, 3]
    assert visited.page.get_by_role("img", name="a curve").count() == 1
    assert (visited.outside, visited.errors) == ([], [])


def test_an_update_redraws_in_place_and_keeps_the_zoom(visit, chart_page):
    visited = visit(chart_page)
    draw(visited, curve([1, 5, 3]))
    box = visited.page.locator(".nsewdrag").bounding_box()
    visited.page.mouse.move(box["x"] + 100, box["y"] + 50)
    visited.page.mouse.down()
    visited.page.mouse.move(box["x"] + 400, box["y"] + 150, steps=5)
    visited.page.mouse.up()
    zoomed = "document.querySelector('.js-plotly-plot')._fullLayout.yaxis.range[1]"
    visited.wait(f"{zoomed} < 10")
    before = visited.page.evaluate(zoomed)
    visited.page.evaluate("figure => chart.update(figure)", curve([2, 6, 4]).to_json())
    assert drawn_values(visited) == [2, 6, 4]
    assert visited.page.evaluate(zoomed) == before
    assert visited.page.locator(".js-plotly-plot").count() == 1


def test_the_chart_takes_the_width_of_its_place(visit, chart_page):
    visited = visit(chart_page)
    draw(visited, curve([1, 5, 3]))
    visited.page.evaluate("document.getElementById('picture').style.width = '500px'")
    visited.wait("document.querySelector('.js-plotly-plot')._fullLayout.width === 500")


def test_text_follows_the_page_and_the_notebooks_theme_wins(visit, chart_page):
    visited = visit(chart_page)
    draw(visited, curve([1, 5, 3]))
    assert text_color(visited) == "rgb(0, 0, 0)"
    visited.page.emulate_media(color_scheme="dark")
    visited.wait("getComputedStyle(document.querySelector('.gtitle')).fill === 'rgb(255, 255, 255)'")
    visited.page.evaluate("document.body.style.setProperty('--jp-content-font-color1', 'rgb(9, 8, 7)')")
    visited.wait("getComputedStyle(document.querySelector('.gtitle')).fill === 'rgb(9, 8, 7)'")


def test_a_printed_chart_is_black_on_white_and_fits_the_paper(visit, chart_page):
    visited = visit(chart_page, dark=True)
    draw(visited, curve([1, 5, 3]))
    visited.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    visited.wait("getComputedStyle(document.querySelector('.gtitle')).fill === 'rgb(0, 0, 0)'")
    visited.wait("document.querySelector('.js-plotly-plot')._fullLayout.width < 700")
    visited.page.evaluate("dispatchEvent(new Event('afterprint'))")
    visited.wait("document.querySelector('.js-plotly-plot')._fullLayout.width > 700")


def test_a_chart_waits_for_a_plotly_that_comes_later(visit, chart_page):
    visited = visit(chart_page)
    visited.page.evaluate("globalThis.kept = Plotly; delete globalThis.Plotly")
    visited.page.evaluate(
        f"globalThis.chart = drawChart(document.getElementById('picture'), {curve([1, 5, 3]).to_json()}); 0"
    )
    assert visited.page.locator(".main-svg").count() == 0
    visited.page.evaluate("globalThis.Plotly = kept; dispatchEvent(new Event('perfkit-plotly-ready'))")
    visited.page.locator(".main-svg").first.wait_for()


def test_a_chart_made_before_its_place_is_in_the_page_is_drawn_when_it_gets_there(visit, chart_page):
    visited = visit(chart_page)
    visited.page.evaluate(
        f"globalThis.place = document.createElement('div'); drawChart(place, {curve([1, 5, 3]).to_json()}).drawn"
    )
    assert visited.page.evaluate("place.dataset.error") is None
    visited.page.evaluate("document.body.append(place)")
    visited.page.locator(".main-svg").first.wait_for()
    assert text_color(visited) == "rgb(0, 0, 0)"


def test_a_destroyed_chart_leaves_nothing_behind(visit, chart_page):
    visited = visit(chart_page)
    draw(visited, curve([1, 5, 3]))
    visited.page.evaluate("chart.destroy()")
    assert visited.page.evaluate("document.getElementById('picture').children.length") == 0
    visited.page.set_viewport_size({"width": 600, "height": 600})
    assert visited.errors == []
