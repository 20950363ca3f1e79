"""How does a notebook show what a number is worth: intervals beside the truth, a queue's edges, an audit?"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from perfkit.clock import NS_PER_S
from perfkit.explaining.twin.coverage import Trial, trial_table
from perfkit.explaining.twin.single_server import SingleServer
from perfkit.measuring.experiment import Run
from perfkit.measuring.scanning.grid import Scan
from perfkit.units import format_duration, format_percent

if TYPE_CHECKING:
    import ipywidgets
    import pandas

    from perfkit.showing.notebook.chart import Chart
    from perfkit.showing.report.rows import TextTable


def coverage(queue: SingleServer, lengths_s: Sequence[float], runs: int = 40, seed: int = 0) -> Chart:
    """Intervals of P99 of `runs` runs at each length, judged in two ways, beside the truth."""
    from perfkit.showing.notebook.chart import Chart
    from perfkit.showing.plots.coverage import plot_coverage

    trials = [Trial(queue=queue, seconds=seconds, runs=runs, seed=seed) for seconds in lengths_s]
    return Chart(plot_coverage(trial_table(trials), title=f"P99 of a queue at load {queue.load_ratio:g}"))


def filling(queue: SingleServer, seconds: float, runs: int = 400, seed: int = 0) -> Chart:
    """How the mean latency of a queue that starts empty comes to its steady value."""
    from perfkit.showing.notebook.chart import Chart
    from perfkit.showing.plots.filling import plot_filling

    latency_s = queue.latencies(queue.requests_in(seconds), seed, runs=runs, from_empty=True)
    title = f"A queue at load {queue.load_ratio:g} that starts empty"
    return Chart(plot_filling(latency_s, queue.rate_rps, queue.mean_s, title=title))


def tradeoff(scans: Mapping[str, Scan], varied: Mapping[str, str]) -> Chart:
    """P99 over throughput of several scans by label; each varies a setting of its own, named in `varied`."""
    import pandas

    from perfkit.showing.notebook.chart import Chart
    from perfkit.showing.plots.tradeoff import plot_tradeoff, tradeoff_table

    parts = [tradeoff_table({label: scan.points}, varied[label]).assign(series=label) for label, scan in scans.items()]
    title = f"{' and '.join(scans)}: P99 against throughput"
    return Chart(plot_tradeoff(pandas.concat(parts, ignore_index=True), "load", title=title))


def slower_than(runs: Mapping[str, Run], limit_s: float) -> pandas.DataFrame:
    """One row a run by label: requests, how many took longer than the limit, the slowest, and the run's grade."""
    import pandas

    rows = {}
    for label, run in runs.items():
        latency_s = _latencies(run)
        slow = int((latency_s > limit_s).sum())
        rows[label] = {
            "requests": len(latency_s),
            f"slower than {format_duration(limit_s)}": f"{slow} ({format_percent(slow / max(1, len(latency_s)))})",
            "slowest": format_duration(float(latency_s.max())),
            "grade": run.grade,
        }
    return pandas.DataFrame.from_dict(rows, orient="index")


def averaged(run: Run, p: float = 0.99) -> pandas.DataFrame:
    """A quantile of all requests of a run beside the average and the worst of that quantile of each second."""
    import pandas

    table = run.table("requests")
    latency_s = _latencies(run)
    since_s = (table["scheduled_ns"] - table["scheduled_ns"].min()).loc[latency_s.index] // NS_PER_S
    of_seconds = latency_s.groupby(since_s).quantile(p)
    name = f"P{p * 100:g}"
    values = {
        f"average of the {name} of each second": of_seconds.mean(),
        "the worst of them": of_seconds.max(),
        f"{name} of all requests": latency_s.quantile(p),
    }
    return pandas.DataFrame({name: {label: format_duration(float(value)) for label, value in values.items()}})


def _latencies(run: Run) -> pandas.Series[float]:
    """Seconds from the scheduled instant to the reply, of the requests that got a good one."""
    table = run.table("requests")
    good = table[table["end_state"] == "ok"]
    return (good["received_ns"] - good["scheduled_ns"]).astype("float64") / NS_PER_S


def audited(path: str | Path) -> ipywidgets.HTML:
    """What a file of another tool, or a published table, says, and what in it cannot be right."""
    import ipywidgets

    from perfkit.measuring.importers.audit import audit
    from perfkit.measuring.importers.formats import read_file
    from perfkit.showing.report import foreignrows

    imported = read_file(Path(path))
    findings = audit(imported)
    parts = [f"<p>{html.escape(fact)}</p>" for fact in foreignrows.facts(imported)]
    parts += [_table(table) for table in foreignrows.tables(imported)]
    parts += [_finding(*foreignrows.finding_text(finding)) for finding in findings]
    if not findings:
        parts.append(f"<p>{html.escape(foreignrows.NO_FINDING)}</p>")
    return ipywidgets.HTML(f"<div style='line-height: 1.5; white-space: normal'>{''.join(parts)}</div>")


def _table(table: TextTable) -> str:
    head = "".join(_cell("th", heading, heading in table.words) for heading in table.headings)
    rows = "".join(
        f"<tr>{''.join(_cell('td', figure.text, name in table.words, figure.note) for name, figure in named)}</tr>"
        for named in (zip(table.headings, row, strict=True) for row in table.rows)
    )
    title = f"<p><b>{html.escape(table.title)}</b></p>" if table.title else ""
    return (
        f"{title}<table style='border-collapse: collapse'><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    )


def _cell(tag: str, text: str, is_text: bool, note: str = "") -> str:
    side = "left" if is_text else "right"
    small = f"<small style='display: block; opacity: 0.8'>{html.escape(note)}</small>" if note else ""
    style = f"padding: 3px 14px 3px 0; text-align: {side}; vertical-align: top; white-space: nowrap"
    return f"<{tag} style='{style}'>{html.escape(text)}{small}</{tag}>"


def _finding(headline: str, figures: str, rule: str) -> str:
    return (
        f"<p style='margin: 6px 0'><b>{html.escape(headline)}</b><br>{html.escape(figures)}"
        f"<br><small style='opacity: 0.8'>{html.escape(rule)}</small></p>"
    )
