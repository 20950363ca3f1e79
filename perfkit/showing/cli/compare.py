"""`perfkit compare A B`: is B faster or slower than A, and how sure is that?"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from perfkit.errors import ConfigError, EnvironmentLacks
from perfkit.showing.cli import options as flags

if TYPE_CHECKING:
    from perfkit.measuring.analysis.compare.verdict import Rule
    from perfkit.measuring.comparing.comparison import Comparison
    from perfkit.measuring.comparing.plan import ComparisonPlan

EXIT_CODES = {"faster": 0, "no difference": 0, "slower": 1, "mixed": 1, "inconclusive": 5}
VOID = EnvironmentLacks.exit_code


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of the command."""
    side = "NAME=VALUE[,NAME=VALUE…], default (no change), a TOML file of settings, or a folder of archived runs"
    parser.add_argument("a", metavar="A", help=f"what B is held against: {side}")
    parser.add_argument("b", metavar="B", help="likewise")
    flags.add_model(parser)
    flags.add_load(parser)
    add_pairs(parser)
    flags.add_seconds(parser, 5.0, "measured time per run, warm-up not counted")
    parser.add_argument(
        "--margin", type=read_share, default=None, metavar="SHARE", help="the least change that matters (default 3%%)"
    )
    add_across_machines(parser)
    parser.add_argument("--plot", type=Path, metavar="FILE", help="write the picture of the pairs as an HTML page")
    parser.add_argument("--resume", action="store_true", help="go on with the unfinished comparison in --out")
    flags.add_output(parser, "the comparison's own folder (default: a new one in perfkit-runs)")


def add_pairs(parser: argparse.ArgumentParser) -> None:
    """How many pairs of runs."""
    parser.add_argument(
        "--pairs", type=int, default=10, help="pairs of runs in random ABBA order, fresh processes (default 10)"
    )


def add_across_machines(parser: argparse.ArgumentParser) -> None:
    """Whether stored runs of different machines may be held against each other."""
    parser.add_argument(
        "--across-machines", action="store_true", help="compare archived runs of different machines all the same"
    )


def read_share(text: str) -> float:
    """`5%` or `0.05` as a ratio, above 0 and below 1."""
    number = text.strip().removesuffix("%")
    try:
        ratio = float(number) / (100 if number != text.strip() else 1)
    except ValueError:
        ratio = 0.0
    if not 0 < ratio < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no share; write 5% or 0.05")
    return ratio


def run(options: argparse.Namespace) -> int:
    """Measure or read, judge and print; exit 0 faster or no difference, 1 slower, 5 inconclusive, 3 void."""
    from perfkit.showing.cli import console

    comparison = _compare(options)
    if options.plot:
        from perfkit.showing.plots.compare import compare_table, plot_compare

        plot_compare(compare_table(comparison), title=comparison.title).write_html(options.plot)
    if options.json:
        console.print_json(comparison.to_json())
    else:
        say(comparison)
    return EXIT_CODES.get(comparison.verdict, VOID)


def say(comparison: Comparison) -> None:
    """The comparison for a person."""
    from perfkit.showing.cli import console
    from perfkit.showing.cli.comparisons import comparison_table
    from perfkit.showing.report.compared import remarks

    console.say(comparison.claim, style="bold")
    console.results().print(comparison_table(comparison))
    for line in remarks(comparison):
        console.say(line)


def _compare(options: argparse.Namespace) -> Comparison:
    rule = _rule(options)
    stored = [text for text in (options.a, options.b) if Path(text).is_dir()]
    if len(stored) == 1:
        raise ConfigError(
            f"{stored[0]} is a folder of runs and the other side is not; give two folders, or settings on both sides "
            "(perfkit gate --baseline takes a folder and measures the other side)"
        )
    if stored:
        from perfkit.measuring.comparing.interleaving import compare_folders

        return compare_folders(Path(options.a), Path(options.b), rule, options.across_machines)
    return measure_plan(options, _plan(options), rule)


def _rule(options: argparse.Namespace) -> Rule:
    from perfkit.measuring.analysis.compare.verdict import MARGIN_RATIO, Rule

    return Rule(margin_ratio=MARGIN_RATIO if options.margin is None else options.margin)


def _plan(options: argparse.Namespace) -> ComparisonPlan:
    from perfkit.measuring.comparing.plan import ComparisonPlan
    from perfkit.showing.cli.sides import read_side

    return ComparisonPlan(
        a=read_side(options.a, options),
        b=read_side(options.b, options),
        pairs=options.pairs,
        seconds=options.seconds,
        seed=options.seed,
    )


def measure_plan(options: argparse.Namespace, plan: ComparisonPlan, rule: Rule) -> Comparison:
    """Measure in turns, with a bar; an interruption says how to go on."""
    from perfkit.measuring.archive.format import COMPARISON_NAME
    from perfkit.measuring.comparing.interleaving import new_comparison_folder, run_comparison
    from perfkit.showing.cli import console

    if options.resume and options.out is None:
        raise ConfigError("--resume needs --out DIR, the folder of the comparison to go on with")
    folder = options.out or new_comparison_folder()
    try:
        with console.tour_progress(options.json) as tell:
            return run_comparison(plan, folder, rule, tell, options.resume)
    except KeyboardInterrupt:
        if not (folder / COMPARISON_NAME).exists():
            raise KeyboardInterrupt("interrupted before anything was measured") from None
        flags_ = f"--resume --out {shlex.quote(str(folder))}"
        raise KeyboardInterrupt(
            f"interrupted; whole pairs are kept, go on with the same command and {flags_}"
        ) from None
