"""How does a run or a scan read as a table: in a page that may be dark, and as plain text?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from perfkit.measuring.analysis.scaling.wording import scaling_answers
from perfkit.measuring.experiment import Run
from perfkit.measuring.scanning.contrast import Contrast
from perfkit.measuring.scanning.grid import Scan
from perfkit.showing.plots.points import knee_text, knees_by_label, loop_text
from perfkit.showing.report.advice import limit_texts, recommendation
from perfkit.showing.report.badge import badge_html, badge_style
from perfkit.showing.report.collect import report_of_run, report_of_scan
from perfkit.showing.report.data import ReportData
from perfkit.showing.report.rows import COLUMNS, Row, row_of

MOST_ROWS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Points as texts: `head` names what `Row.setting` is; `notes` are sentences below."""

    caption: str
    head: str
    rows: tuple[Row, ...]
    notes: tuple[str, ...]


def table_of(result: Run | Scan | Contrast) -> Table:
    """The table of a run (one row), a scan, or a contrast (its sides one below the other); raises ArchiveError."""
    if isinstance(result, Contrast):
        sides = {"varied": result.varied, "series": result.series, "knee": result.knees}
        return _table(result.scan, report_of_scan(result.scan), sides)
    report = report_of_run(result) if isinstance(result, Run) else report_of_scan(result)
    return _table(result, report, report.scans[0])


def _table(result: Run | Scan, report: ReportData, section: Mapping[str, Any]) -> Table:
    points = [(label, point) for label, series in section["series"].items() for point in series]
    left_out = len(points) - MOST_ROWS
    return Table(
        caption=_caption(report, [point for _, point in points]),
        head=section["varied"],
        rows=tuple(row_of(point, label, section["varied"]) for label, point in points[:MOST_ROWS]),
        notes=tuple(_notes(result, section, left_out)),
    )


def _caption(report: ReportData, points: Sequence[Mapping[str, Any]]) -> str:
    return " · ".join(filter(None, [report.title, loop_text(points), "simulated" if report.simulated else ""]))


def _notes(result: Run | Scan, section: Mapping[str, Any], left_out: int) -> Iterator[str]:
    if left_out > 0:
        yield f"{left_out} more points are not shown; `points` holds them all."
    for label, knee in knees_by_label(section["knee"]).items():
        yield f"Knee{f' of {label}' if label else ''}: {knee_text(knee)} ({knee['method']})."
    yield from limit_texts(section.get("fits") or {}, scaling_answers)
    if isinstance(result, Scan):
        yield recommendation(result.best())
    else:
        yield from result.stored.manifest.notes
    yield f"Archived in {result.folder}"


@cache
def _template() -> jinja2.Template:
    # autoescape: labels, reasons and paths come from users and services
    text = (Path(__file__).parent / "table.html.j2").read_text("utf-8")
    return jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(text)


def to_html(table: Table) -> str:
    """The table as a piece of a page, in JupyterLab's own colours."""
    return _template().render(table=table, columns=COLUMNS, badge_html=badge_html, badge_style=badge_style())


def to_text(table: Table) -> str:
    """The table as lines of text."""
    lines = [(table.head, *COLUMNS, "grade"), *(_cells(row) for row in table.rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    aligned = ("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) for line in lines)
    return "\n".join([table.caption, *(line.rstrip() for line in aligned), *_reasons(table), *table.notes])


def _cells(row: Row) -> tuple[str, ...]:
    figures = (f"{figure.text} ({figure.note})" if figure.note else figure.text for figure in row.figures)
    return (_name(row), *figures, row.grade)


def _reasons(table: Table) -> list[str]:
    return [f"{_name(row)}: {reason}" for row in table.rows for reason in row.reasons]


def _name(row: Row) -> str:
    return ", ".join(filter(None, [row.label, row.setting]))
