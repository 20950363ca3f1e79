"""How does a comparison become one offline page: the verdict, every pair drawn, every run by name?"""

from __future__ import annotations

from perfkit.measuring.analysis.compare.replicate import METRICS, Replicate
from perfkit.measuring.analysis.compare.verdict import MetricShift
from perfkit.measuring.analysis.compare.wording import SHIFT_HEADINGS, shift_cells, value_text
from perfkit.measuring.comparing.comparison import Comparison
from perfkit.showing.plots.compare import compare_table, plot_compare
from perfkit.showing.report.page import chart_of, environment, page_frame
from perfkit.showing.report.rows import Figure, TextTable
from perfkit.units import ABSENT, format_number, format_percent


def render_comparison(comparison: Comparison, created: str) -> str:
    """The page as text. `created`: the moment of the comparison; empty where it is not known."""
    drawn = compare_table(comparison)
    told = {
        "comparison": comparison,
        "created": created,
        "figure": chart_of("comparison", plot_compare(drawn, title=comparison.title)) if len(drawn) else None,
        "remarks": remarks(comparison),
        "shifts": shifts_table(comparison),
        "runs": _runs_table(comparison),
    }
    return environment().get_template("compared.html.j2").render(**page_frame(), **told)


def shifts_table(comparison: Comparison) -> TextTable:
    """A row for each metric: medians, shift with interval, what could have been seen, and the verdict."""
    unit = "pairs" if comparison.findings.is_paired else "runs"
    rows = (tuple(Figure(text=text) for text in shift_row(one)) for one in comparison.findings.metrics)
    headings = (*SHIFT_HEADINGS, "p", unit, "verdict")
    return TextTable(title="", headings=headings, rows=tuple(rows), words=("metric", "verdict"))


def shift_row(one: MetricShift) -> tuple[str, ...]:
    """A metric as texts: `SHIFT_HEADINGS`, then p, the number of pairs or runs, and the verdict."""
    verdict = one.verdict or "not judged"
    if one.shift is None:
        return (*shift_cells(one), ABSENT, "", verdict)
    count = str(one.shift.runs_a) if one.shift.is_paired else f"{one.shift.runs_a}+{one.shift.runs_b}"
    return (*shift_cells(one), format_number(one.shift.p_value), count, verdict)


def remarks(comparison: Comparison) -> list[str]:
    """How to read the table, what was left out, and what may have disturbed."""
    judged = comparison.findings.judged
    lines = []
    if judged:
        level = format_percent(judged[0].confidence_ratio)
        lines.append(
            f"Each interval is one of {level}, so that all {len(judged)} hold together with 95 %. An alarm takes an "
            'interval without zero and at least the shift under "alarm at"; "detectable" is found in 80 % of '
            "such comparisons."
        )
    ours, theirs = comparison.findings.errors_ratio
    if ours or theirs:
        lines.append(f"failed requests: {format_percent(ours)} of A's, {format_percent(theirs)} of B's")
    lines += [*comparison.left_out, *comparison.noise, *comparison.notes]
    return [*lines, *(f"saved in {folder}" for folder in comparison.folders)]


def _runs_table(comparison: Comparison) -> TextTable:
    """Every run in pairs, the void ones too: a number a metric, its grade, and why the grade is not better."""
    sides = (("A", comparison.runs_a), ("B", comparison.runs_b))
    numbered = ((place, side, run) for side, runs in sides for place, run in enumerate(runs, start=1))
    rows = (_run_row(str(place), side, run) for place, side, run in sorted(numbered, key=lambda row: row[:2]))
    unit = "pair" if comparison.findings.is_paired else "run"
    headings = (unit, "side", "id", *(metric.title for metric in METRICS), "grade")
    return TextTable(title="The runs", headings=headings, rows=tuple(rows), words=(unit, "side", "id", "grade"))


def _run_row(place: str, side: str, run: Replicate) -> tuple[Figure, ...]:
    values = (Figure(text=value_text(metric, run.values[metric.name])) for metric in METRICS)
    grade = Figure(text=run.grade, note="; ".join(run.reasons))
    return (Figure(text=place), Figure(text=side), Figure(text=run.run_id), *values, grade)
