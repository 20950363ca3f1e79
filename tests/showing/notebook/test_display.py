"""What does a notebook show for a run and a scan, and what does it cost before there is one?"""

import subprocess
import sys
from types import SimpleNamespace

import IPython.display
import pytest
from IPython.core.formatters import DisplayFormatter

from perfkit.showing.notebook import display
from perfkit.showing.notebook.chart import Chart


@pytest.fixture
def shell():
    """As much of a shell as shows values."""
    shell = SimpleNamespace(display_formatter=DisplayFormatter())
    display.register(shell)
    return shell


def test_a_run_is_a_table_and_plain_text_beside_it(shell, profiled_run):
    data, _ = shell.display_formatter.format(profiled_run)
    assert data["text/html"].startswith('<div class="perfkit-table">')
    assert data["text/plain"].startswith("perfkit run: planted example, not a measurement")


@pytest.mark.parametrize(("front", "shown"), [("notebook", [dict, Chart]), ("terminal", [dict])])
def test_a_scan_is_a_table_and_in_a_notebook_also_its_curve(shell, scan, monkeypatch, front, shown):
    outputs = []
    monkeypatch.setattr(IPython.display, "display", lambda value, raw=False: outputs.append(value))
    running = SimpleNamespace(kernel=None) if front == "notebook" else SimpleNamespace()
    monkeypatch.setattr(IPython, "get_ipython", lambda: running)
    assert shell.display_formatter.format(scan) == ({}, {})
    assert [isinstance(*pair) for pair in zip(outputs, shown, strict=True)] == [True] * len(shown)
    assert set(outputs[0]) == {"text/plain", "text/html"}


def test_without_a_shell_nothing_happens():
    assert display.register() is None


def test_importing_perfkit_beside_ipython_loads_none_of_the_pictures():
    command = (
        "import IPython, sys; before = set(sys.modules); import perfkit; "
        "new = {name.partition('.')[0] for name in set(sys.modules) - before}; print(*sorted(new & "
        "{'pandas', 'plotly', 'ipywidgets', 'anywidget', 'torch', 'scipy', 'jinja2'}))"
    )
    found = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []
