"""How does a gate report to a build server? One sentence, a Markdown table, or JUnit's XML."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree

from perfkit.measuring.analysis.compare.wording import figures_text, interval_text, value_text
from perfkit.units import ABSENT, format_change, format_percent

if TYPE_CHECKING:
    from perfkit.measuring.analysis.compare.gate import Gate, GateLine
    from perfkit.measuring.comparing.comparison import Comparison


def claim(found: Gate, comparison: Comparison) -> str:
    """The answer in one sentence."""
    allowed, label = format_percent(found.worse_than_ratio), " (simulated)" if comparison.simulated else ""
    failed = [line for line in found.lines if line.result == "failed"]
    if found.answer == "regression" and failed:
        return f"regression{label}: {'; '.join(figures_text(line.shift) for line in failed)}, {allowed} is allowed"
    if found.answer == "regression":
        return f"regression{label}: more requests fail than with the baseline"
    if found.answer == "passed":
        return f"passed{label}: nothing is worse by {allowed} or more"
    if found.answer == "void":
        return f"void{label}: no run of one side counts"
    return f"inconclusive{label}: these runs show neither a worsening of {allowed} nor its absence"


def line_text(line: GateLine, found: Gate) -> str:
    """One metric's result in words."""
    title, allowed = line.shift.metric.title, format_percent(found.worse_than_ratio)
    if line.worst_ratio is None:
        return f"{line.result}: {title}: too few runs for an interval"
    worst = f"{title} may be worse by up to {format_percent(max(0.0, line.worst_ratio))}"
    size, way = format_percent(abs(line.worse_ratio)), "worse" if line.worse_ratio > 0 else "better"
    return f"{line.result}: {worst} (estimate: {size} {way}), {allowed} is allowed"


def markdown(found: Gate, comparison: Comparison) -> str:
    """A heading, a table and the remarks, as pull requests and job summaries show them."""
    rows = [
        "| metric | baseline | candidate | change | interval | result |",
        "| --- | ---: | ---: | ---: | ---: | --- |",
    ]
    rows += [f"| {' | '.join(_cells(line))} |" for line in found.lines]
    notes = [f"- {_escaped(note)}" for note in (*comparison.left_out, *comparison.noise, *comparison.notes)]
    return "\n".join([f"### perfkit gate: {_escaped(claim(found, comparison))}", "", *rows, "", *notes, ""])


def _cells(line: GateLine) -> tuple[str, ...]:
    one = line.shift
    assert one.shift is not None
    values = (value_text(one.metric, one.a), value_text(one.metric, one.b))
    change, interval = format_change(one.shift.value_ratio), interval_text(one.shift) or ABSENT
    return (one.metric.title, *values, change, interval, line.result)


def _escaped(text: str) -> str:
    """Names come from users: nothing in them may be a table's bar or HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|")


def junit(found: Gate, comparison: Comparison) -> str:
    """One test case a metric, one for failed requests; what is open is skipped, with the reason."""
    cases = [*found.lines, None]
    failures = sum(line.result == "failed" for line in found.lines) + found.fails_more
    skipped = sum(line.result == "open" for line in found.lines)
    facts = {"name": "perfkit gate", "tests": str(len(cases)), "failures": str(failures), "skipped": str(skipped)}
    suite = ElementTree.Element("testsuite", facts)
    for line in found.lines:
        case = ElementTree.SubElement(suite, "testcase", classname="perfkit.gate", name=line.shift.metric.title)
        if line.result != "passed":
            kind = "failure" if line.result == "failed" else "skipped"
            ElementTree.SubElement(case, kind, message=line_text(line, found)).text = figures_text(line.shift)
    errors = ElementTree.SubElement(suite, "testcase", classname="perfkit.gate", name="failed requests")
    if found.fails_more:
        ours, theirs = map(format_percent, comparison.findings.errors_ratio)
        ElementTree.SubElement(errors, "failure", message=f"{theirs} of requests fail, {ours} with the baseline")
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"
