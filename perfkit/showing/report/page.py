"""How does a report become one HTML file that opens from disk, asks no other machine, and prints?"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from perfkit.errors import ArchiveError
from perfkit.measuring.analysis.scaling.wording import scaling_answers, scaling_silences
from perfkit.showing.plots.gpu import plot_gpu
from perfkit.showing.plots.ledger import ledger_table, plot_ledger
from perfkit.showing.plots.points import knee_text, knees_by_label
from perfkit.showing.plots.scan import plot_scan, scan_table
from perfkit.showing.plots.tradeoff import plot_tradeoff, tradeoff_table
from perfkit.showing.report.advice import limit_texts
from perfkit.showing.report.badge import badge_html, badge_style
from perfkit.showing.report.data import ReportData
from perfkit.showing.report.glossary import GLOSSARY
from perfkit.showing.report.gpurows import GPU_COLUMNS, GpuRow, gpu_rows
from perfkit.showing.report.rows import COLUMNS, Row, facts, row_of
from perfkit.showing.report.scripts import page_scripts, policy
from perfkit.showing.web import assets

_FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A figure in the page: the id of its data, what a screen reader says, and the data."""

    name: str
    description: str
    json: Markup


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A scan as the page shows it."""

    title: str
    varied: str
    rows: tuple[Row, ...]
    ledger: Chart
    curve: Chart | None
    tradeoff: Chart | None
    knees: tuple[str, ...]
    unsaid: tuple[str, ...]
    best: str
    gpus: tuple[GpuRow, ...]


def write_report(path: Path, report: ReportData) -> None:
    """Write the report; raises ArchiveError when it cannot be written."""
    write_page(path, render_report(report))


def write_page(path: Path, page: str) -> None:
    """Write a page; a reader never sees half a file. Raises ArchiveError when it cannot be written."""
    draft = path.with_name(f".{path.name}.draft")
    try:
        draft.write_text(page, "utf-8")
        os.replace(draft, path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise ArchiveError(
            f"cannot write the report {path}: {error.strerror}; give a path in a folder that exists and has room"
        ) from error


def render_report(report: ReportData) -> str:
    """The report's page as text."""
    return (
        environment()
        .get_template("page.html.j2")
        .render(
            **page_frame(),
            report=report,
            columns=(*COLUMNS, "requests"),
            scans=[_section(scan, at) for at, scan in enumerate(report.scans)],
            flame_json=Markup(assets.inline_json(report.flame)) if report.flame else None,
            comparison=[row_of(point, label, "") for label, point in (report.comparison or {}).items()],
            loads=list(_loads(report.scans)),
            badge_html=badge_html,
            gpu_columns=GPU_COLUMNS,
            gpu=_gpu_chart(report) if report.gpu else None,
            environment=list(facts(report.environment)),
            glossary=GLOSSARY,
        )
    )


def environment() -> jinja2.Environment:
    """Where templates are found and how: every text is escaped, an unknown name is an error."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def page_frame() -> dict[str, Any]:
    """What every page needs: its style, its scripts, and the policy that allows no other."""
    scripts = page_scripts()
    style = Markup((_FOLDER / "page.css").read_text("utf-8")) + badge_style()
    return {"style": style, "policy": Markup(policy(scripts)), "scripts": scripts}


def _section(scan: Mapping[str, Any], at: int) -> Section:
    title, varied, series = scan["title"], scan["varied"], scan["series"]
    table = scan_table(series, varied)
    has_curve = table.loc[table["throughput_rps"].notna(), "setting"].nunique() > 1
    knee, best, fits = scan.get("knee"), scan.get("best"), scan.get("fits") or {}
    figure = plot_scan(table, varied, knee=knee, fits=(fits.get("") or {}).get("fits"), title=title)
    tradeoff = tradeoff_table(series, varied)
    return Section(
        title=title,
        varied=varied,
        rows=tuple(row_of(point, label, varied) for label, points in series.items() for point in points),
        curve=chart_of(f"scan-{at}", figure) if has_curve else None,
        ledger=chart_of(f"ledger-{at}", plot_ledger(ledger_table(series, varied), varied)),
        tradeoff=chart_of(f"tradeoff-{at}", plot_tradeoff(tradeoff, varied)) if has_curve else None,
        knees=(*_knee_texts(knee), *limit_texts(fits, scaling_answers)),
        unsaid=tuple(limit_texts(fits, scaling_silences)),
        gpus=tuple(gpu_rows(series, varied)),
        best=f"Best of this scan: {best['reason']} (judged by {best['basis'].upper()})." if best else "",
    )


def chart_of(name: str, figure: Any) -> Chart:
    """A figure as the page holds it."""
    return Chart(name=name, description=figure.layout.title.text, json=Markup(assets.inline_text(figure.to_json())))


def _gpu_chart(report: ReportData) -> Chart:
    import pandas

    return chart_of("gpu", plot_gpu(pandas.DataFrame(report.gpu), title="GPU over time", simulated=report.simulated))


def _knee_texts(knee: Mapping[str, Any] | None) -> Iterator[str]:
    for label, one in knees_by_label(knee).items():
        whose = f" of {label}" if label else ""
        yield f"Knee{whose}: {one['setting']} {knee_text(one)} ({one['method']})."


def _loads(scans: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """One line for every load that a scan's points ran under."""
    for scan in scans:
        for label, points in scan["series"].items():
            texts = [", ".join(f"{name} {text}" for name, text in facts(point.get("load") or {})) for point in points]
            for text in dict.fromkeys(filter(None, texts)):
                yield f"{scan['title']}{f' ({label})' if label else ''}: {text}."
