"""How does a cell show that a measurement goes on? One line below it: a bar, what is running, how long it still takes.

An HTML output that is updated in place, not a widget: it stays readable when the kernel has ended.
"""

from __future__ import annotations

import contextlib
import html
from collections.abc import Iterator
from typing import Any

from IPython.display import DisplayHandle

from perfkit.clock import NS_PER_S, REAL_CLOCK
from perfkit.measuring.audience import Step, Tell
from perfkit.units import format_duration

_BAR_STYLE = "width: 12em; vertical-align: middle; margin-right: 0.8em"


@contextlib.contextmanager
def progress_line() -> Iterator[Tell]:
    """An audience of measurements: shows each step, and at the end how long all took."""
    line, started_ns, ending = _Line(), REAL_CLOCK.now_ns(), "stopped after"
    try:
        yield line.show
        ending = "measured in"
    finally:
        line.end(f"{ending} {format_duration((REAL_CLOCK.now_ns() - started_ns) / NS_PER_S)}")


class _Line:
    """One output of the cell that runs. Used by one thread."""

    def __init__(self) -> None:
        self._handle: Any = DisplayHandle()  # type: ignore[no-untyped-call]
        self._handle.display(_bundle("starting", ""), raw=True)  # type: ignore[no-untyped-call]

    def show(self, step: Step) -> None:
        """Replace what the line says."""
        left = f"about {format_duration(step.left_s)} left" if step.left_s > 0 else "nearly done"
        bar = f"<progress max='{step.total_s:g}' value='{step.done_s:g}' style='{_BAR_STYLE}'></progress>"
        self._handle.update(_bundle(f"{step.doing}; {left}", bar), raw=True)

    def end(self, text: str) -> None:
        """Leave a last word."""
        self._handle.update(_bundle(text, ""), raw=True)


def _bundle(text: str, bar: str) -> dict[str, str]:
    shown = f"<div class='perfkit-progress' role='status'>{bar}{html.escape(text)}</div>"
    return {"text/plain": text, "text/html": shown}
