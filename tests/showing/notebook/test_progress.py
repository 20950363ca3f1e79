"""Does the line below a cell say what runs and how long it takes, and does it end with a last word?"""

import types

import pytest
from IPython.core.formatters import DisplayFormatter

from perfkit.measuring import audience
from perfkit.measuring.audience import Step
from perfkit.showing.notebook import display, progress
from perfkit.showing.notebook.progress import progress_line


@pytest.fixture
def shown(monkeypatch):
    """The bundles that the line's output was given, in order."""
    bundles = []

    class Handle:
        def display(self, bundle, raw):
            bundles.append(bundle)

        update = display

    monkeypatch.setattr(progress, "DisplayHandle", Handle)
    return bundles


def test_each_step_replaces_the_line_and_the_last_says_how_long_it_took(shown):
    with progress_line() as tell:
        tell(Step(doing="part 1 of 2: workers=<1>", done_s=2.0, total_s=8.0))
        tell(Step(doing="part 2 of 2: workers=2", done_s=9.0, total_s=8.0))
    texts = [bundle["text/plain"] for bundle in shown]
    assert texts[:3] == [
        "starting",
        "part 1 of 2: workers=<1>; about 6.00 s left",
        "part 2 of 2: workers=2; nearly done",
    ]
    assert texts[3].startswith("measured in ")
    assert "<progress max='8' value='2'" in shown[1]["text/html"]
    assert "workers=&lt;1&gt;" in shown[1]["text/html"]
    assert "<progress" not in shown[3]["text/html"]


def test_what_did_not_end_well_is_not_called_measured(shown):
    with pytest.raises(ZeroDivisionError), progress_line():
        _ = 1 / 0
    assert shown[-1]["text/plain"].startswith("stopped after ")


@pytest.mark.parametrize(("front", "is_seated"), [({"kernel": None}, True), ({}, False)])
def test_only_a_notebook_seats_it(monkeypatch, shown, front, is_seated):
    monkeypatch.setattr(audience, "_seated", audience._nobody)
    display.register(types.SimpleNamespace(display_formatter=DisplayFormatter(), **front))
    with audience.attending():
        pass
    assert [bundle["text/plain"] for bundle in shown[:1]] == (["starting"] if is_seated else [])
