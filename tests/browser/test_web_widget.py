"""Do the same files work as anywidgets: loaded from text, drawing from a model, telling it what was clicked?"""

import json
from pathlib import Path

import plotly.graph_objects as go
import pytest

from perfkit.showing.web import assets

pytestmark = pytest.mark.browser

DATA = (Path(__file__).parents[1] / "showing" / "web" / "flame.json").read_text("utf-8")
# What a notebook does with a widget's module, and a model that behaves as anywidget's.
HOST = """
  globalThis.load = async (source) => {
    const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    return (await import(address)).default;
  };
  globalThis.makeModel = (values, loaded = []) => {
    const calls = {};
    return {
      values,
      get: (name) => values[name],
      set: (name, value) => { values[name] = value; },
      save_changes: () => { values.saves = (values.saves ?? 0) + 1; },
      on: (name, call) => { calls[name] = call; },
      off: (name) => { delete calls[name]; },
      change: (name, value) => { values[name] = value; return calls[`change:${name}`]?.(); },
      widget_manager: { get_model: async (id) => { loaded.push(id); } },
      loaded,
    };
  };
"""


@pytest.fixture
def notebook(visit, tmp_path):
    """An empty page that can load a widget's module from text."""
    page = tmp_path / "notebook.html"
    page.write_text('<!doctype html><meta charset="utf-8"><title>notebook</title><div id="cell"></div>', "utf-8")
    visited = visit(page)
    visited.page.evaluate(f"() => {{ {HOST} }}")
    return visited


def test_charts_wait_for_the_one_widget_that_carries_plotly(notebook):
    figure = go.Figure(go.Scatter(y=[1, 2]))
    notebook.page.evaluate(
        """async ([source, figure]) => {
          globalThis.widget = await load(source);
          globalThis.model = makeModel({ figure, runtime: "IPY_MODEL_abc" });
          await widget.initialize({ model });
          globalThis.stop = widget.render({ model, el: document.getElementById("cell") });
        }""",
        [assets.chart_js(), figure.to_json()],
    )
    assert notebook.page.evaluate("model.loaded") == ["abc"]
    assert notebook.page.locator(".main-svg").count() == 0
    notebook.page.evaluate("async source => { (await load(source)).initialize(); }", assets.plotly_module_js())
    notebook.page.locator(".main-svg").first.wait_for()
    figure.data[0].y = [3, 4, 5]
    notebook.page.evaluate("figure => model.change('figure', figure)", figure.to_json())
    notebook.wait("document.querySelector('.js-plotly-plot').data[0].y.length === 3")
    notebook.page.evaluate("stop()")
    assert notebook.page.evaluate("document.getElementById('cell').children.length") == 0
    assert (notebook.outside, notebook.errors) == ([], [])


def test_a_click_into_the_flame_graph_reaches_the_model(notebook):
    notebook.page.evaluate(
        """async ([source, data]) => {
          globalThis.model = makeModel({ data });
          globalThis.stop = (await load(source)).render({ model, el: document.getElementById("cell") });
        }""",
        [assets.flame_js(), DATA],
    )
    notebook.page.locator("canvas").click(position={"x": 100, "y": 5 * 19 + 9})
    selected = notebook.page.evaluate("model.values.selected")
    assert (selected["frame"], selected["samples"]) == ("compute (sample_models/minilm.py:84)", 486)
    assert notebook.page.evaluate("model.values.saves") == 1
    other = {**json.loads(DATA), "title": "another run"}
    notebook.page.evaluate("data => model.change('data', data)", other)
    assert notebook.page.locator(".caption").inner_text().startswith("another run")
    notebook.page.evaluate("stop()")
    assert notebook.page.evaluate("document.getElementById('cell').children.length") == 0
    assert (notebook.outside, notebook.errors) == ([], [])
