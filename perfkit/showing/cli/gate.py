"""`perfkit gate`: did a change make the service worse than allowed? Made for continuous integration.

perfkit gate --record DIR        keep a baseline: runs of one setting, each in a fresh process
perfkit gate --baseline DIR      measure the candidate, hold it against the stored baseline
perfkit gate --against SIDE      measure candidate and baseline settings in turns (the surest)
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfkit.errors import ConfigError, EnvironmentLacks
from perfkit.showing.cli import options as flags
from perfkit.showing.cli.compare import add_across_machines, measure_plan, read_share

if TYPE_CHECKING:
    from perfkit.measuring.analysis.compare.gate import Gate
    from perfkit.measuring.analysis.compare.verdict import Rule
    from perfkit.measuring.comparing.comparison import Comparison
    from perfkit.measuring.comparing.plan import Side
    from perfkit.measuring.comparing.stored import Replicates

EXIT_CODES = {"passed": 0, "regression": 1, "inconclusive": 5, "void": EnvironmentLacks.exit_code}
METRICS = {"throughput": "throughput_rps", "p50": "p50_s", "p95": "p95_s", "p99": "p99_s"}
_RUNS = 10
_SECONDS = 5.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of the command."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--record", type=Path, metavar="DIR", help="measure runs of this setting and keep them there")
    what.add_argument(
        "--baseline", type=Path, metavar="DIR", help="folder of runs to hold the candidate against (also DIR/a)"
    )
    what.add_argument(
        "--against", metavar="SIDE", help="baseline settings, measured in turns with the candidate: as in compare"
    )
    parser.add_argument("--candidate", type=Path, metavar="DIR", help="runs measured before (default: measure now)")
    parser.add_argument(
        "--metric", action="append", choices=tuple(METRICS), default=[], help="judge this one (repeatable; default all)"
    )
    parser.add_argument(
        "--worse-than", type=read_share, default=0.05, metavar="SHARE", help="the worsening that fails (default 5%%)"
    )
    flags.add_model(parser)
    flags.add_load(parser)
    parser.add_argument("--runs", type=int, default=None, help=f"runs a side (default {_RUNS}, or the baseline's)")
    parser.add_argument(
        "--seconds", type=float, default=None, help=f"measured time per run (default {_SECONDS:g}, or the baseline's)"
    )
    add_across_machines(parser)
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write a summary for a pull request or a job")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write the results as JUnit XML")
    parser.add_argument(
        "--resume", action="store_true", help="go on with the unfinished measurement in --record or --out"
    )
    flags.add_output(parser, "folder for the runs that are measured now (default: a new one in perfkit-runs)")


def run(options: argparse.Namespace) -> int:
    """Judge and print; exit 0 passed, 1 a regression, 5 inconclusive, 3 void."""
    from perfkit.measuring.analysis.compare.gate import gate
    from perfkit.showing.cli import console, gate_summary

    if options.record:
        return _record(options)
    comparison = _interleaved(options) if options.against else _stored(options)
    found = gate(comparison.findings, options.worse_than)
    for path, write in ((options.markdown, gate_summary.markdown), (options.junit, gate_summary.junit)):
        if path is not None:
            path.write_text(write(found, comparison), "utf-8")
    if options.json:
        console.print_json(_document(found, comparison))
    else:
        _say(found, comparison)
    return EXIT_CODES[found.answer]


def _document(found: Gate, comparison: Comparison) -> dict[str, Any]:
    head = {"schema": 1, "simulated": comparison.simulated}
    return head | found.to_json() | {"comparison": comparison.to_json()}


def _say(found: Gate, comparison: Comparison) -> None:
    from perfkit.showing.cli import console
    from perfkit.showing.cli.comparisons import comparison_table
    from perfkit.showing.cli.gate_summary import claim, line_text
    from perfkit.showing.report.compared import remarks

    console.say(claim(found, comparison), style="bold")
    for line in found.lines:
        console.say(line_text(line, found))
    console.results().print(comparison_table(comparison))
    for text in remarks(comparison):
        console.say(text)


def _rule(options: argparse.Namespace) -> Rule:
    from perfkit.measuring.analysis.compare.replicate import METRICS as ALL
    from perfkit.measuring.analysis.compare.verdict import Rule

    wanted = {METRICS[name] for name in options.metric} or set(METRICS.values())
    metrics = tuple(metric for metric in ALL if metric.name in wanted)
    return Rule(margin_ratio=options.worse_than, metrics=metrics)


def _candidate(options: argparse.Namespace) -> Side:
    import dataclasses

    from perfkit.showing.cli.sides import DEFAULT, read_side

    return dataclasses.replace(read_side(DEFAULT, options), label="candidate")


def _record(options: argparse.Namespace) -> int:
    from perfkit.showing.cli import console

    if options.candidate or options.out:
        raise ConfigError("--record names the folder itself; leave out --candidate and --out")
    kept = _measure(options, _candidate(options), options.record, (_RUNS, _SECONDS))
    usable = sum(not run.is_void for run in kept.runs)
    if options.json:
        document = {"schema": 1, "simulated": kept.manifest.simulated, "folder": str(kept.folder)}
        console.print_json(document | {"runs": [run.to_json() for run in kept.runs]})
    else:
        console.say(f"{usable} of {len(kept.runs)} runs count as a baseline; saved in {kept.folder}")
    return 0 if usable else EnvironmentLacks.exit_code


def _interleaved(options: argparse.Namespace) -> Comparison:
    from perfkit.measuring.comparing.plan import ComparisonPlan
    from perfkit.showing.cli.sides import read_side

    if options.candidate:
        raise ConfigError("--candidate holds runs measured before; with --against both sides are measured now")
    plan = ComparisonPlan(
        a=read_side(options.against, _without_changes(options)),
        b=_candidate(options),
        pairs=_RUNS if options.runs is None else options.runs,
        seconds=options.seconds or _SECONDS,
        seed=options.seed,
    )
    return measure_plan(options, plan, _rule(options))


def _without_changes(options: argparse.Namespace) -> argparse.Namespace:
    """What --set changes is the candidate's; the baseline has the same model, file and load."""
    return argparse.Namespace(**{**vars(options), "changes": []})


def _stored(options: argparse.Namespace) -> Comparison:
    from perfkit.measuring.comparing.stored import judge_sides, read_replicates

    baseline = read_replicates(options.baseline)
    candidate = read_replicates(options.candidate) if options.candidate else _measured_now(options, baseline)
    return judge_sides((baseline, candidate), _rule(options), options.across_machines)


def _measured_now(options: argparse.Namespace, baseline: Replicates) -> Replicates:
    """The baseline's settings, --set on top, under the baseline's load; a model or file of settings replaces them."""
    import dataclasses

    from perfkit import fields
    from perfkit.measuring.comparing.baseline import seconds_of, side_of
    from perfkit.measuring.comparing.interleaving import new_comparison_folder

    side = side_of(baseline)
    server, client = flags.split_changes(options.changes, side.load)
    if client or options.concurrency or options.rate or options.payloads:
        raise ConfigError("the load is the baseline's, so that both sides bear the same; leave out flags of the load")
    if options.model or options.settings:
        side = dataclasses.replace(side, settings=flags.read_server_settings(options))
    else:
        side = dataclasses.replace(side, settings=fields.replace(side.settings, server))
    if options.resume and options.out is None:
        raise ConfigError("--resume needs --out DIR, the folder of the candidate's runs to go on with")
    folder = options.out or new_comparison_folder()
    return _measure(options, side, folder, (len(baseline.runs), seconds_of(baseline.manifest)))


def _measure(options: argparse.Namespace, side: Side, folder: Path, usual: tuple[int, float]) -> Replicates:
    from perfkit.measuring.comparing.baseline import Repetition, measure_replicates
    from perfkit.showing.cli import console

    runs = usual[0] if options.runs is None else options.runs
    plan = Repetition(side=side, runs=runs, seconds=options.seconds or usual[1], folder=folder)
    try:
        with console.tour_progress(options.json) as tell:
            return measure_replicates(plan, tell, options.resume)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"interrupted; whole runs are kept in {folder}, go on with the same command and --resume"
        ) from None
