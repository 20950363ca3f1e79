"""How is a comparison said in words? Every figure with its interval, its count and what could have been seen."""

from __future__ import annotations

from perfkit.measuring.analysis.compare.replicate import Metric
from perfkit.measuring.analysis.compare.shift import Shift, least_pairs
from perfkit.measuring.analysis.compare.verdict import FLOORS, Findings, MetricShift, Rule
from perfkit.units import (
    ABSENT,
    format_change,
    format_duration,
    format_interval,
    format_number,
    format_percent,
    format_rate,
)

SHIFT_HEADINGS = ("metric", "A", "B", "shift", "interval", "alarm at", "detectable")
_ERRORS_APART = 0.001  # below, a difference of failures is not worth a line


def claim_of(findings: Findings, labels: tuple[str, str], simulated: bool) -> str:
    """The verdict in one sentence: who against whom, by which metrics."""
    a, b = labels
    label = " (simulated)" if simulated else ""
    against = f"{b} against {a}{label}"
    if findings.verdict == "void":
        return f"void: no run of one side counts, so nothing can be said of {against}"
    alarms = [one for one in findings.judged if one.verdict in ("faster", "slower")]
    decisive = "; ".join(figures_text(one) for one in alarms)
    if findings.verdict == "inconclusive":
        return f"inconclusive: {against}; {_why_inconclusive(findings)}"
    return f"{findings.verdict}: {against}" + (f"; {decisive}" if decisive else "")


def _why_inconclusive(findings: Findings) -> str:
    open_ones = [one for one in findings.judged if one.verdict == "inconclusive"]
    if not open_ones:
        return "no metric has enough values"
    if all(one.shift is not None and one.shift.low_ratio is None for one in open_ones):
        return "too few runs for any interval"
    names = ", ".join(one.metric.title for one in open_ones)
    return f"neither a change that matters nor its absence is shown for {names}"


def describe(findings: Findings, rule: Rule) -> tuple[str, ...]:
    """A line for each metric, and one for failures where the sides differ in them."""
    lines = [_line(one, findings, rule) for one in findings.metrics]
    ours, theirs = findings.errors_ratio
    if abs(ours - theirs) > _ERRORS_APART:
        lines.append(f"failed requests: {format_percent(ours)} of A's, {format_percent(theirs)} of B's")
    return tuple(lines)


def figures_text(one: MetricShift) -> str:
    """`P99 41.2 ms → 47.9 ms (+16.0 %, 95 % interval +11.0 to +21.0 %, 10 pairs)`."""
    if one.shift is None:
        return f"{one.metric.title}: no value in {one.missing} runs"
    was, now = value_text(one.metric, one.a), value_text(one.metric, one.b)
    interval = interval_text(one.shift)
    level = format_percent(one.confidence_ratio)
    bounds = f"{level} interval {interval}" if interval else f"no {level} interval from so few"
    return f"{one.metric.title} {was} → {now} ({format_change(one.shift.value_ratio)}, {bounds}, {_count(one.shift)})"


def shift_cells(one: MetricShift) -> tuple[str, ...]:
    """A metric as a row of texts under `SHIFT_HEADINGS`; a metric that was not judged has none but its name."""
    if one.shift is None:
        return (one.metric.title, *[ABSENT] * (len(SHIFT_HEADINGS) - 1))
    return (
        one.metric.title,
        value_text(one.metric, one.a),
        value_text(one.metric, one.b),
        format_change(one.shift.value_ratio),
        interval_text(one.shift) or ABSENT,
        format_percent(one.threshold_ratio),
        format_percent(one.detectable_ratio),
    )


def interval_text(shift: Shift) -> str:
    """`+11.0 to +21.0 %`; nothing where there is no interval."""
    if shift.low_ratio is None or shift.high_ratio is None:
        return ""
    return format_interval(format_change(shift.low_ratio), format_change(shift.high_ratio))


def value_text(metric: Metric, value: float | None) -> str:
    """A value of the metric in its unit."""
    return format_rate(value) if metric.name.endswith("_rps") else format_duration(value)


def _count(shift: Shift) -> str:
    return f"{shift.runs_a} pairs" if shift.is_paired else f"{shift.runs_a} + {shift.runs_b} runs"


def _line(one: MetricShift, findings: Findings, rule: Rule) -> str:
    if one.verdict is None:
        return f"not judged: {one.metric.title} has no value in {one.missing} of {sum(findings.counted)} runs"
    return f"{one.verdict}: {figures_text(one)}; {power_text(one, rule)}"


def power_text(one: MetricShift, rule: Rule) -> str:
    """What these runs could have shown, what an alarm takes, and how many pairs a change of 5 % would need."""
    assert one.shift is not None
    smallest, threshold = format_percent(one.detectable_ratio), format_percent(one.threshold_ratio)
    floored = one.threshold_ratio != rule.margin_ratio
    origin = f"{format_number(FLOORS)} × the noise of A against A" if floored else "the least that matters"
    text = f"a change of {smallest} would be found in 80 % of such comparisons, an alarm takes {threshold} ({origin})"
    text += f", Wilcoxon p = {format_number(one.shift.p_value)}"
    if one.shift.low_ratio is None:
        return f"{text}; at least {least_pairs(1 - one.confidence_ratio)} pairs give an interval"
    return text + _more(one, rule)


def _more(one: MetricShift, rule: Rule) -> str:
    if one.verdict != "inconclusive" or one.shift is None:
        return ""
    effect = 2 * rule.margin_ratio
    needed = one.pairs_for(effect, rule.margin_ratio)
    if needed is None or needed <= one.shift.runs_a:
        return ""
    return f"; {needed} pairs would find a change of {format_percent(effect)}"
