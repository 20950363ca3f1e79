"""How does the command line talk to a person? Results on stdout, progress and remarks on stderr."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from perfkit.measuring.phase import Progress as RoundProgress
from perfkit.measuring.scanning.grid import ScanProgress, ScanWatch
from perfkit.measuring.scanning.tour import TourProgress, TourWatch

_FILE_COLUMNS = 160
_remarks = Console(stderr=True, highlight=False)


def print_json(document: Any) -> None:
    """The one JSON document of a command."""
    print(json.dumps(document, ensure_ascii=False))


def results() -> Console:
    """Where tables go; into a file or a pipe they are not squeezed to the width of a terminal."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=_FILE_COLUMNS)


def remark(text: str) -> None:
    """One line for the person, on stderr."""
    _remarks.print(text)


@contextmanager
def scan_progress(title: str, quiet: bool) -> Iterator[ScanWatch]:
    """A bar with what is running and the time left; on a terminal only, and silent when quiet."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=_remarks, disable=quiet or not _remarks.is_terminal, transient=True) as bars:
        task = bars.add_task(title, total=1.0)

        def watch(progress: ScanProgress) -> None:
            done_s = progress.part * progress.part_seconds + _elapsed_s(progress.live, progress.part_seconds)
            varied = ", ".join(f"{name}={value}" for name, value in progress.varied.items())
            text = f"{title}: {varied} (part {progress.part + 1} of {progress.parts})"
            bars.update(task, description=text, completed=done_s, total=progress.parts * progress.part_seconds)

        yield watch


def _bar(quiet: bool) -> Progress:
    """On a terminal only, and silent when quiet."""
    columns = (
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    return Progress(*columns, console=_remarks, disable=quiet or not _remarks.is_terminal, transient=True)


def _elapsed_s(live: RoundProgress | None, most_s: float) -> float:
    return 0.0 if live is None else min(live.elapsed_s, most_s)


@contextmanager
def tour_progress(quiet: bool) -> Iterator[TourWatch]:
    """One bar for the whole demo: what is running, and the time left."""
    with _bar(quiet) as bars:
        task = bars.add_task("starting", total=None)

        def watch(progress: TourProgress) -> None:
            bars.update(task, description=progress.doing, completed=progress.done_s, total=progress.total_s)

        yield watch
