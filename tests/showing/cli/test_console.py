"""What goes where, and is a line kept whole where nobody wraps it?"""

import io

import pytest
from rich.progress import Progress

from perfkit.measuring.audience import Step
from perfkit.measuring.phase import Progress as RoundProgress
from perfkit.measuring.scanning.grid import ScanProgress
from perfkit.showing.cli import console

LONG = "word " * 60 + "/a/path/without/[brackets]/or:smile:"


@pytest.fixture
def terminal(monkeypatch):
    """A terminal of 60 columns on stderr that keeps what was drawn."""
    stream = io.StringIO()
    monkeypatch.setattr(console, "_remarks", console._console(file=stream, force_terminal=True, width=100))
    return stream


def live(elapsed_s, tmp_path):
    return RoundProgress(elapsed_s=elapsed_s, total_s=1.0, samples=tmp_path, stats=None)


def test_a_statement_in_a_pipe_is_one_line_as_it_was_said(capsys):
    console.say(LONG)
    console.remark(LONG)
    assert tuple(capsys.readouterr()) == (f"{LONG}\n", f"{LONG}\n")


def test_a_document_is_one_line_of_ascii(capsys):
    console.print_json({"name": "größe", "value": 1.5})
    assert capsys.readouterr().out == '{"name": "gr\\u00f6\\u00dfe", "value": 1.5}\n'


def test_a_scans_bar_says_what_runs_and_how_far_it_is(terminal, tmp_path):
    with console.scan_progress(quiet=False) as watch:
        for elapsed in (None, live(0.5, tmp_path), live(9.0, tmp_path)):
            watch(ScanProgress(part=2, parts=4, varied={"workers": 2, "seed": 1}, part_seconds=1.0, live=elapsed))
    drawn = terminal.getvalue()
    assert "part 3 of 4: workers=2, seed=1" in drawn
    assert "75 %" in drawn, "a part that takes longer than planned counts no more than a part"
    assert "left" in drawn


def test_the_demos_bar_and_a_rounds_bar_say_what_runs(terminal, tmp_path):
    with console.tour_progress(quiet=False) as watch:
        watch(Step(doing="flame graph", done_s=30.0, total_s=120.0))
    with console.round_progress("load on http://x", 10.0, quiet=False) as watch:
        watch(live(5.0, tmp_path))
    drawn = terminal.getvalue()
    assert "flame graph" in drawn
    assert "25 %" in drawn
    assert "load on http://x" in drawn


def test_the_time_left_is_the_plans_until_there_is_a_speed():
    bars = Progress(console._TimeLeft())
    task = bars.add_task("", total=None)
    column = console._TimeLeft()
    assert column.render(bars.tasks[task]).plain == ""
    bars.update(task, total=90.0, completed=15.0)
    assert column.render(bars.tasks[task]).plain == "0:01:15 left"


@pytest.mark.parametrize("quiet", [True, False])
def test_no_bar_is_drawn_where_nobody_watches(capsys, quiet):
    with console.tour_progress(quiet) as watch:
        watch(Step(doing="flame graph", done_s=30.0, total_s=120.0))
    assert tuple(capsys.readouterr()) == ("", "")


def test_a_quiet_command_draws_no_bar_on_a_terminal_either(terminal):
    with console.tour_progress(quiet=True) as watch:
        watch(Step(doing="flame graph", done_s=30.0, total_s=120.0))
    assert terminal.getvalue() == ""
