"""How does the command line talk to a person? Results on stdout, progress and remarks on stderr."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from perfkit.measuring.audience import Step
from perfkit.measuring.phase import Progress as RoundProgress
from perfkit.measuring.phase import Watch
from perfkit.measuring.scanning.grid import ScanProgress, ScanWatch
from perfkit.measuring.scanning.tour import TourWatch

_FILE_COLUMNS = 160


def _console(**where: Any) -> Console:
    """Texts come from users and services: brackets and colons in them mean nothing."""
    return Console(highlight=False, emoji=False, markup=False, **where)


_remarks = _console(stderr=True)


def print_json(document: Any) -> None:
    """The one JSON document of a command. In ASCII, so that every stream can take it."""
    print(json.dumps(document))


def results() -> Console:
    """Where tables go; into a file or a pipe they are not squeezed to the width of a terminal."""
    console = _console()
    return console if console.is_terminal else _console(width=_FILE_COLUMNS)


def say(text: str, style: str = "") -> None:
    """One statement of a result, wrapped between words on a terminal and kept on one line elsewhere."""
    console = results()
    console.print(text, style=style, soft_wrap=not console.is_terminal)


def remark(text: str) -> None:
    """One line for the person, on stderr."""
    _remarks.print(text, soft_wrap=not _remarks.is_terminal)


class _TimeLeft(ProgressColumn):
    """By the speed so far; before there is one, by the plan, whose unit is the second."""

    def render(self, task: Task) -> Text:
        planned = None if task.total is None else task.total - task.completed
        left = planned if task.time_remaining is None else task.time_remaining
        return Text("" if left is None else f"{timedelta(seconds=max(0, round(left)))} left", style="cyan")


@contextmanager
def _bar(quiet: bool) -> Iterator[_Bar]:
    """On a terminal only, and silent when quiet."""
    columns = (
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:>3.0f} %", markup=False),
        _TimeLeft(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=_remarks, disable=quiet or not _remarks.is_terminal, transient=True) as bars:
        yield _Bar(bars)


class _Bar:
    """One bar: what is running, and how far the whole is."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._task = bars.add_task("starting", total=None)

    def show(self, step: Step) -> None:
        done_s = min(step.done_s, step.total_s)
        self._bars.update(self._task, description=step.doing, completed=done_s, total=step.total_s)


@contextmanager
def scan_progress(quiet: bool) -> Iterator[ScanWatch]:
    """A bar for a whole scan."""
    with _bar(quiet) as bar:

        def watch(progress: ScanProgress) -> None:
            bar.show(progress.step)

        yield watch


@contextmanager
def round_progress(doing: str, seconds: float, quiet: bool) -> Iterator[Watch]:
    """A bar for a single phase of load that takes about so many seconds."""
    with _bar(quiet) as bar:

        def watch(progress: RoundProgress) -> None:
            bar.show(Step(doing=doing, done_s=progress.elapsed_s, total_s=seconds))

        yield watch


@contextmanager
def parts_progress(doing: str, parts: int, quiet: bool) -> Iterator[Callable[[int], None]]:
    """A bar for equal parts; is told the number of each, from 0, as it begins."""
    with _bar(quiet) as bar:

        def tell(part: int) -> None:
            bar.show(Step(doing=f"{doing}: part {part + 1} of {parts}", done_s=part, total_s=parts))

        yield tell


@contextmanager
def tour_progress(quiet: bool) -> Iterator[TourWatch]:
    """A bar for the whole demo."""
    with _bar(quiet) as bar:

        def watch(step: Step) -> None:
            bar.show(step)

        yield watch
