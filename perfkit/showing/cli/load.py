"""`perfkit load`: what throughput and latency does a service give under a load, how surely, and again?"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from perfkit import fields
from perfkit.errors import ConfigError
from perfkit.showing.cli import options as flags
from perfkit.showing.cli.main import exit_code

if TYPE_CHECKING:
    from perfkit.measuring.analysis.replicates import Between
    from perfkit.measuring.experiment import Run
    from perfkit.measuring.load.loops import Load
    from perfkit.measuring.replicates import Trial
    from perfkit.measuring.service import Service

_INCONCLUSIVE = 5
_MOST_SECONDS = 120.0
_AUDIT_SECONDS = 24.0  # two for each of twelve parts


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of the command."""
    parser.add_argument(
        "url",
        metavar="URL",
        nargs="?",
        help="where requests go: http://host:port (then /predict) or with a path; without one, --model is launched",
    )
    flags.add_model(parser)
    flags.add_load(parser)
    parser.add_argument(
        "--beside",
        action="append",
        default=[],
        metavar="NAME=VALUE,...",
        help="another load at the same time, reported apart: concurrency=1,lane=online, or rate_rps=400,lane=offline "
        "for an open loop (repeatable)",
    )
    parser.add_argument(
        "--pid", type=int, metavar="PID", help="the service's process here: records its threads, counters and commit"
    )
    parser.add_argument(
        "--audit-repeats",
        action="store_true",
        help="instead of a run: is one payload over and over answered 1.10 times as fast as different ones? Exit 1 "
        "when it is, 5 when that stays open",
    )
    flags.add_profile_seconds(parser, "measured time, warm-up not counted; with --until, that before the first look")
    parser.add_argument(
        "--until",
        metavar="QUANTILE:WIDTH",
        help="measure until p50, p95 or p99 is known to ±WIDTH, e.g. p99:5%%; looks at doubling instants",
    )
    parser.add_argument(
        "--most-seconds",
        type=flags.read_seconds,
        default=_MOST_SECONDS,
        help=f"with --until, give up after this measured time and say what it would take (default {_MOST_SECONDS:g})",
    )
    parser.add_argument(
        "--replicates",
        type=int,
        default=1,
        metavar="N",
        help="measure N times, each with a fresh server process when perfkit launches it (default 1)",
    )
    flags.add_parent(parser)


def run(options: argparse.Namespace) -> int:
    """Measure and print one point a load; exit 3 when all are void, 5 when --until was not reached."""
    from perfkit.measuring.replicates import measure_replicates
    from perfkit.showing.cli import console

    if options.replicates < 1:
        raise ConfigError(f"--replicates is {options.replicates}; it takes 1 or more")
    start, load, where = _source(options)
    if options.audit_repeats:
        return _audit_repeats(start, load, options)
    trial = _trial(options, load)
    seconds = trial.goal.looks_s[-1] if trial.goal else trial.seconds
    with console.round_progress(f"load on {where}", seconds * options.replicates, options.json) as watch:
        replicates = measure_replicates(start, trial, options.replicates, watch)
    if options.replicates > 1:
        _tell_replicates(replicates, where, options)
    else:
        _tell_one(replicates[0], where, options)
    points = [run.point for runs in replicates for run in runs.values()]
    code = _smoke_code(points) or exit_code(points)
    return _INCONCLUSIVE if code == 0 and trial.goal and _missed(replicates) else code


def _audit_repeats(start: Callable[[], Service], load: Load, options: argparse.Namespace) -> int:
    from perfkit.measuring.scanning.repeats import ORDER, audit_repeats
    from perfkit.showing.cli import console
    from perfkit.showing.cli.repeats import tell_repeats

    seconds = options.seconds or _AUDIT_SECONDS
    with start() as service, console.parts_progress("repeat-payload audit", len(ORDER), options.json) as tell:
        audit = audit_repeats(service, load, seconds, tell)
    return tell_repeats(audit, options.json)


def _smoke_code(points: Sequence[Mapping[str, Any]]) -> int:
    """A smoke test asks whether every request succeeds; no is an answer, however busy the machine was."""
    return int(any(point["load"]["profile"] == "smoke" and bool(point["errors"]) for point in points))


def _source(options: argparse.Namespace) -> tuple[Callable[[], Service], Load, str]:
    """How the service is had, the load before --beside, and what the service is called."""
    from perfkit.measuring.service import attach, launch

    load = flags.read_load(options)
    if options.url is None:
        if not (options.model or options.settings):
            raise ConfigError("load got no URL; give that of a running service, or --model for one to be launched")
        settings, load = flags.read_settings(options, load)
        return lambda: launch(settings), load, settings.model
    server, client = flags.split_changes(options.changes, load)
    if server or options.model or options.settings:
        name = next(iter(server), "--model" if options.model else "--settings")
        raise ConfigError(f"{name} belongs to the server, which perfkit load does not start; set it there")
    url: str = options.url
    return lambda: attach(url, options.pid), fields.replace(load, client), url


def _trial(options: argparse.Namespace, load: Load) -> Trial:
    from perfkit.measuring.analysis.precision import parse_goal
    from perfkit.measuring.load.loops import changes_level
    from perfkit.measuring.replicates import Trial

    if options.until and changes_level(load):
        raise ConfigError(f"--until asks for one level, and the {load.profile} has several; leave one of them out")
    seconds = flags.seconds_of(options, load)
    goal = parse_goal(options.until, seconds, options.most_seconds) if options.until else None
    loads = {"": load, **flags.read_beside(options.beside, load)}
    return Trial(loads=loads, seconds=seconds, goal=goal, out=options.out)


def _missed(replicates: Sequence[Mapping[str, Run]]) -> bool:
    return any(_precision(next(iter(runs.values())).point)["status"] != "pass" for runs in replicates)


def _precision(point: Mapping[str, Any]) -> Mapping[str, Any]:
    """The certificate's entry about what the run was asked to know."""
    entry: Mapping[str, Any] = next(one for one in point["certificate"]["entries"] if one["name"] == "precision")
    return entry


def _documents(runs: Mapping[str, Run], asked: bool) -> dict[str, Any]:
    found, *beside = ({**run.point, "folder": str(run.folder)} for run in runs.values())
    further: dict[str, Any] = {"until": _until(found)} if asked else {}
    return found | further | ({"beside": beside} if beside else {})


def _until(point: Mapping[str, Any]) -> dict[str, Any]:
    entry = _precision(point)
    unknown = {"half_width_ratio": None, "needs_s": None}
    told = {"reached": entry["status"] == "pass", "target_ratio": entry["threshold"], **unknown, **entry["figures"]}
    return told if told["reached"] else {**told, "reason": entry["reason"]}


def _tell_one(runs: Mapping[str, Run], where: str, options: argparse.Namespace) -> None:
    from perfkit.showing.cli import console
    from perfkit.showing.plots.points import loop_text

    if options.json:
        console.print_json({"schema": 1, **_documents(runs, bool(options.until))})
        return
    for text, run in runs.items():
        _tell(run, f"{text or loop_text([run.point])} · {where}")
    if options.until:
        _tell_precision(next(iter(runs.values())))


def _tell(run: Run, title: str) -> None:
    from perfkit.showing.cli import console
    from perfkit.showing.cli.profile_lines import profile_lines, steps_table
    from perfkit.showing.cli.tables import points_table, remarks
    from perfkit.showing.report.badge import badge_of

    console.results().print(points_table([run.point], title))
    if any("varied" in step for step in run.point.get("steps", ())):
        console.results().print(steps_table(run.point))
    for line in (*remarks([run.point]), *profile_lines(run.point, run.stored.manifest.generator_reports)):
        console.say(line)
    console.say(f"certificate: {badge_of(run.point).summary}")
    console.say(f"saved in {run.folder}")


def _tell_precision(run: Run) -> None:
    from perfkit.showing.cli import console
    from perfkit.units import format_percent

    entry = _precision(run.point)
    half, asked = (format_percent(ratio) for ratio in (entry["figures"].get("half_width_ratio"), entry["threshold"]))
    console.say(entry["reason"] or f"precision: known to ±{half}, asked for ±{asked}")


def _tell_replicates(replicates: Sequence[Mapping[str, Run]], where: str, options: argparse.Namespace) -> None:
    from perfkit.measuring.analysis.replicates import between_runs
    from perfkit.showing.cli import console

    firsts = [next(iter(runs.values())) for runs in replicates]
    between = between_runs([run.point for run in firsts])
    if options.json:
        documents = [_documents(runs, bool(options.until)) for runs in replicates]
        told = {name: one.to_json() for name, one in between.items()}
        simulated = any(document["simulated"] for document in documents)
        fresh = {"fresh_processes": options.url is None}
        console.print_json(
            {"schema": 1, "simulated": simulated, **fresh, "replicates": documents, "between_runs": told}
        )
        return
    for number, runs in enumerate(replicates, 1):
        for text, run in runs.items():
            _tell(run, f"replicate {number}{f' · {text}' if text else ''} · {where}")
    _tell_between(between, options.url is None)


def _tell_between(between: Mapping[str, Between], fresh: bool) -> None:
    from perfkit.showing.cli import console
    from perfkit.showing.cli.tables import between_table

    console.results().print(between_table(between, "fresh processes" if fresh else "the same process"))
