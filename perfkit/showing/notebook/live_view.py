"""What does the panel draw while a run goes on (from its samples), and when it has ended (from the archive)?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from perfkit.clock import NS_PER_S, REAL_CLOCK
from perfkit.measuring.experiment import Run
from perfkit.measuring.phase import Progress
from perfkit.showing.notebook.chart import Chart
from perfkit.showing.notebook.live import SETTLED_NS, Replies, SampleTail, archived_replies, live_readings
from perfkit.showing.plots.live import live_table, plot_live
from perfkit.showing.plots.points import count_text

REDRAW_NS = NS_PER_S // 2
"""Twice a second: a drawing costs some 25 ms of one core, and the service may need them all."""


class LiveView:
    """A chart of throughput, latency and queue over the time of one run. One thread at a time."""

    def __init__(self, simulated: bool) -> None:
        self._simulated = simulated
        self._tail = SampleTail()
        self._gauges: list[dict[str, Any]] = []
        self._next_ns = 0
        self.chart = Chart(self._figure([], "No run yet"))

    def begin(self, title: str) -> None:
        """Forget the run before."""
        self._tail = SampleTail()
        self._gauges = []
        self._next_ns = 0
        self.chart.draw(self._figure([], title))

    def follow(self, progress: Progress, title: str) -> None:
        """Take in how the run goes, and draw it when it is time again."""
        if progress.stats is not None:
            stats = progress.stats
            reading = {"queued": stats["queued"], "threads": stats["crew"]["current"]}
            self._gauges.append({"time_ns": stats["gauge"]["time_ns"], **reading})
        now_ns = REAL_CLOCK.now_ns()
        if now_ns >= self._next_ns:
            self._next_ns = now_ns + REDRAW_NS
            self._draw(self._tail.read(progress.samples), self._gauges, now_ns - SETTLED_NS, title)

    def finish(self, run: Run, title: str) -> None:
        """Draw what was archived."""
        manifest = run.stored.manifest
        self._draw(archived_replies(run), manifest.gauges, manifest.rounds[-1]["ended_ns"], title)

    def _draw(self, replies: Replies, gauges: Sequence[Mapping[str, Any]], until_ns: int, title: str) -> None:
        readings = live_readings(replies, gauges, until_ns)
        self.chart.draw(self._figure(readings, f"{title}: {count_text(replies.count)} replies"))

    def _figure(self, readings: Sequence[Mapping[str, Any]], title: str) -> Any:
        return plot_live(live_table(readings), title=title, simulated=self._simulated)
