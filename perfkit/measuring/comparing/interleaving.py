"""How are two settings measured in turns, each run by a fresh process? Each pair is on the disk before the next."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

from perfkit import fields
from perfkit.clock import calendar_now
from perfkit.errors import ConfigError
from perfkit.measuring.analysis.compare.verdict import Rule, compare_replicates
from perfkit.measuring.archive.folder import RunContents
from perfkit.measuring.archive.manifest import new_id
from perfkit.measuring.archive.storedcomparison import Arm, StoredComparison, load_comparison
from perfkit.measuring.audience import Step, Tell, attending
from perfkit.measuring.comparing.comparison import Comparison
from perfkit.measuring.comparing.folder import comparison_of, open_comparison_folder
from perfkit.measuring.comparing.plan import PAIRS, SECONDS, ComparisonPlan, Side, Turn
from perfkit.measuring.comparing.stored import judge_sides, read_replicate, read_replicates
from perfkit.measuring.experiment import RUNS_FOLDER, certify, instruments, record
from perfkit.measuring.load.loops import ClosedLoop, Load
from perfkit.measuring.phase import Plan, Progress, find_payloads
from perfkit.measuring.service import launch
from perfkit.settings.server import ServerSettings

_USUAL_CONCURRENCY = 8  # as in a scan
RUN_OVERHEAD_S = 2.0  # a run's own: start the server, settle, save
SAME = "A and B are the same setting: A against A, which shows how often noise alone looks like a change"


def new_comparison_folder(parent: Path = RUNS_FOLDER) -> Path:
    """A folder name for a comparison that starts now."""
    return parent / f"comparison-{new_id(calendar_now())}"


def compare(
    a: ServerSettings | Path,
    b: ServerSettings | Path,
    load: Load | None = None,
    pairs: int = PAIRS,
    seconds: float = SECONDS,
) -> Comparison:
    """Is B faster or slower than A? Measures settings in turns; judges folders of archived runs as they lie.

    Without a load there are 8 users in a closed loop. Raises ConfigError, TargetFailed, ArchiveError.
    """
    if isinstance(a, ServerSettings) and isinstance(b, ServerSettings):
        load = load or ClosedLoop(concurrency=_USUAL_CONCURRENCY)
        sides = (Side(label=label, settings=settings, load=load) for label, settings in _labelled(a, b).items())
        plan = ComparisonPlan(a=next(sides), b=next(sides), pairs=pairs, seconds=seconds)
        with attending() as tell:
            return run_comparison(plan, new_comparison_folder(), tell=tell)
    if isinstance(a, Path) and isinstance(b, Path):
        return compare_folders(a, b, Rule())
    raise ConfigError("compare takes settings on both sides, or folders of runs on both sides")


def compare_folders(a: Path, b: Path, rule: Rule, across_machines: bool = False) -> Comparison:
    """Judge archived runs: in pairs where both folders are the sides of one comparison, else as two sets of runs."""
    if common := comparison_of(a, b):
        return open_comparison(common, rule)
    return judge_sides((read_replicates(a), read_replicates(b)), rule, across_machines)


def _labelled(a: ServerSettings, b: ServerSettings) -> dict[str, ServerSettings]:
    """Each side named by what it has otherwise than the other one."""
    changes = fields.changes(a, b)
    if not changes:
        return {"A": a, "B": b}
    return {", ".join(f"{name}={fields.get(side, name)}" for name in changes): side for side in (a, b)}


def run_comparison(
    plan: ComparisonPlan, folder: Path, rule: Rule | None = None, tell: Tell | None = None, resume: bool = False
) -> Comparison:
    """Measure the pairs that are pending, then judge. Interrupted at any instant, at most the running pair is lost.

    Raises ConfigError, TargetFailed when a service dies, ArchiveError when the disk refuses.
    """
    with open_comparison_folder(folder, plan, resume) as writer:
        done = set(writer.stored.done_pairs())
        halves: dict[Arm, RunContents] = {}
        for number, turn in enumerate(plan.order):
            if turn.pair in done:
                continue
            halves[turn.arm] = _measure(plan, turn, _reporter(plan, turn, number, tell or (lambda step: None)))
            if len(halves) == len(("a", "b")):
                writer.save_pair(turn.pair, halves)
                halves = {}
    return open_comparison(folder, rule)


def open_comparison(folder: Path, rule: Rule | None = None) -> Comparison:
    """The verdict on a comparison's pairs that are on the disk; raises ArchiveError."""
    stored, rule = load_comparison(folder), rule or Rule()
    pairs = stored.done_pairs()
    runs_a, runs_b = (tuple(read_replicate(stored.run_folder(pair, arm)) for pair in pairs) for arm in ("a", "b"))
    return Comparison(
        labels=stored.labels,
        simulated=stored.simulated,
        findings=compare_replicates(runs_a, runs_b, True, rule),
        rule=rule,
        runs_a=runs_a,
        runs_b=runs_b,
        notes=tuple(_notes(stored, len(pairs))),
        folders=(folder,),
    )


def measure_replicate(side: Side, pair: int, seconds: float, report: Callable[[Progress], None]) -> RunContents:
    """One certified run of a side in a process of its own. The seeds move on with the pair, alike for both sides."""
    with launch(_seeded(side.settings, pair)) as service:
        payloads = find_payloads(service, side.load)
        plan = Plan(load=side.load, seconds=seconds, payloads=payloads, round_index=pair)
        return certify(record(service, plan, instruments(service), report), {})


def _seeded(settings: ServerSettings, pair: int) -> ServerSettings:
    return fields.replace(settings, {"seed": settings.seed + pair})


def _measure(plan: ComparisonPlan, turn: Turn, report: Callable[[Progress], None]) -> RunContents:
    side = plan.side(turn.arm)
    contents = measure_replicate(side, turn.pair, plan.seconds, report)
    manifest = dataclasses.replace(contents.manifest, varied={"side": side.label})
    return dataclasses.replace(contents, manifest=manifest)


def _reporter(plan: ComparisonPlan, turn: Turn, number: int, tell: Tell) -> Callable[[Progress], None]:
    run_s = plan.seconds + RUN_OVERHEAD_S
    doing = f"pair {turn.pair + 1} of {plan.pairs}: {plan.side(turn.arm).label}"

    def step(elapsed_s: float) -> None:
        done_s = number * run_s + min(elapsed_s, run_s)
        tell(Step(doing=doing, done_s=done_s, total_s=len(plan.order) * run_s))

    step(0.0)
    return lambda progress: step(progress.elapsed_s)


def _notes(stored: StoredComparison, done: int) -> list[str]:
    notes = [f"{done} of {stored.pairs} pairs are measured; go on with --resume"] if done < stored.pairs else []
    a, b = stored.plan["a"], stored.plan["b"]
    return [*notes, SAME] if (a.get("settings"), a.get("load")) == (b.get("settings"), b.get("load")) else notes
