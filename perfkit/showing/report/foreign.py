"""How do imported files become one offline page: what they say, what cannot be right in it, and its pictures?"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from perfkit.clock import NS_PER_S
from perfkit.measuring.importers.foreignrun import ForeignRun, point_of
from perfkit.measuring.importers.imported import Imported, Requests
from perfkit.showing.plots.foreign import foreign_table, plot_foreign
from perfkit.showing.plots.latency import latency_table, plot_latency
from perfkit.showing.plots.series import plot_series, series_table
from perfkit.showing.plots.timeline import plot_timeline
from perfkit.showing.report.badge import Badge, badge_html, badge_of
from perfkit.showing.report.foreignrows import NO_FINDING, facts, finding_text, tables
from perfkit.showing.report.page import Chart, chart_of, environment, page_frame
from perfkit.showing.report.rows import TextTable
from perfkit.showing.web import assets

if TYPE_CHECKING:
    import pandas

_LEAST = 2  # points of a curve
_SHOWN_NAMES = 8  # curves in one plot
_SLICES = 60  # of a run: enough to see a development, few enough that a slice holds several requests
_LEAST_SLICE_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSection:
    """One imported file as the page shows it."""

    title: str
    facts: tuple[str, ...]
    is_judged: bool  # whether it holds results that an audit can judge
    findings: tuple[tuple[str, str, str], ...]
    tables: tuple[TextTable, ...]
    charts: tuple[Chart, ...]
    flame: Markup | None
    badge: Badge | None  # of single requests; a summary has none


def render_imports(sections: Sequence[FileSection], created: str, refused: Sequence[str] = ()) -> str:
    """The page as text. `refused` tells of each file that could not be read why."""
    title = sections[0].title if len(sections) == 1 else f"{len(sections)} imported files"
    told = {"title": title, "created": created, "sections": sections, "refused": refused, "no_finding": NO_FINDING}
    template = environment().get_template("foreign.html.j2")
    return template.render(**page_frame(), **told, badge_html=badge_html)


def section_of(run: ForeignRun, at: int) -> FileSection:
    """A file as the page shows it, the at-th on the page; its single requests are not kept."""
    imported = run.imported
    point = point_of(imported)
    return FileSection(
        title=Path(imported.path).name,
        facts=tuple(facts(imported)),
        is_judged=bool(imported.levels),
        findings=tuple(map(finding_text, run.findings)),
        tables=tuple(tables(imported)),
        charts=tuple(chart_of(f"file-{at}-{name}", figure) for name, figure in _figures(imported)),
        flame=Markup(assets.inline_json(run.flame)) if run.flame else None,
        badge=badge_of(point) if point else None,
    )


def _figures(imported: Imported) -> Iterator[tuple[str, Any]]:
    import pandas

    loads = foreign_table(imported.levels)
    if imported.is_range and len(loads) >= _LEAST:
        yield "load", plot_foreign(loads, title="Throughput and latency over the load")
    if imported.requests is not None:
        yield "latency", plot_latency(latency_table(_by_name(imported.requests)), title="Latency by percentile")
        if bool((np.diff(imported.requests.start_ns) >= 0).all()):  # a clock of whole seconds orders nothing
            yield "time", plot_timeline(_over_time(imported.requests), title="Over time")
    if imported.series:
        frame = pandas.DataFrame(imported.series, columns=["time_ns", "source", "name", "unit", "value"])
        yield "series", plot_series(series_table(frame), title="Values over time")


def _by_name(requests: Requests) -> dict[str, Any]:
    """Latencies in seconds of the first names."""
    latency_s = requests.latency_ns / NS_PER_S
    if len(requests.names) == 1:
        return {requests.names[0]: latency_s}
    return {
        name: latency_s[requests.name == at] for at, name in itertools.islice(enumerate(requests.names), _SHOWN_NAMES)
    }


def _over_time(requests: Requests) -> pandas.DataFrame:
    """Slices of the run as the picture over time takes them; requests lie in the order of their start."""
    import pandas

    start_s = (requests.start_ns - requests.start_ns[0]) / NS_PER_S
    slice_s = max(start_s[-1] / _SLICES, _LEAST_SLICE_S)
    count = int(start_s[-1] // slice_s) + 1
    edges = [*np.searchsorted(start_s, np.arange(count) * slice_s), len(start_s)]
    rows = []
    for at, (first, end) in enumerate(itertools.pairwise(edges)):
        good = requests.latency_ns[first:end][~requests.is_error[first:end]] / NS_PER_S
        median, worst = (float(np.median(good)), float(good.max())) if len(good) else (None, None)
        rates = (len(good) / slice_s * requests.stride, (end - first - len(good)) / slice_s * requests.stride)
        rows.append(("requests", (at + 0.5) * slice_s, *rates, median, worst))
    return pandas.DataFrame(rows, columns=["series", "elapsed_s", "good_rps", "other_rps", "p50_s", "worst_s"])
