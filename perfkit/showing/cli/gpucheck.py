"""`perfkit gpucheck`: does perfkit's device side hold on this machine's GPU?

Plain text and JSON by the standard library alone: it must run where nothing but torch, numpy and pynvml is.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from perfkit.clock import NS_PER_S, REAL_CLOCK, calendar_now
from perfkit.errors import ConfigError, EnvironmentLacks
from perfkit.measuring.gpucheck.line import MUST, VERDICT, exit_code
from perfkit.units import format_duration

if TYPE_CHECKING:
    from perfkit.measuring.gpucheck.bench import Bench
    from perfkit.measuring.gpucheck.check import Effort
    from perfkit.measuring.gpucheck.runner import Told

_KINDS = {MUST: "must pass", VERDICT: "verdicts (recorded, whichever way they turn out)"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of the command."""
    parser.add_argument(
        "--device",
        default="cuda",
        help="cuda, or simulated:PRESET such as simulated:h200, which tests the script and no GPU (default cuda)",
    )
    parser.add_argument("--only", metavar="N,N,…", help="numbers of the checks to run (default all)")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("perfkit-runs"),
        metavar="DIR",
        help="folder for a new file that gets a check's lines as soon as it is done (default perfkit-runs)",
    )
    parser.add_argument(
        "--effort",
        type=float,
        default=1.0,
        metavar="SHARE",
        help="share of the specified repetitions, above 0 and at most 1; less than 1 only tries the script out",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document on stdout and nothing else")


def run(options: argparse.Namespace) -> int:
    """Check; 0 when every must line passed, 1 when one failed, 5 when one stayed open, 3 without a GPU."""
    from perfkit.measuring.gpucheck.open import open_bench
    from perfkit.measuring.gpucheck.runner import document

    wanted, effort, started_ns = _numbers(options.only), _effort(options.effort), REAL_CLOCK.now_ns()
    bench = open_bench(options.device)
    with _opened(options.out) as file:
        told = _checked(bench, wanted, effort, file, started_ns)
    result = document(bench, told, _since_s(started_ns)) | {"effort": effort.share, "file": file.name}
    print(json.dumps(result) if options.json else "\n".join(_table(result)))
    code = exit_code([line for one in told for line in one.lines])
    if result["left_behind"]:  # its thread may be inside a call that never ends, and an orderly exit would wait for it
        sys.stdout.flush()
        os._exit(code)
    return code


def _effort(share: float) -> Effort:
    from perfkit.measuring.gpucheck.check import Effort

    if not 0 < share <= 1:
        raise ConfigError(f"--effort is {share:g}; it takes a share above 0 and at most 1")
    return Effort(share)


def _checked(bench: Bench, wanted: Sequence[int], effort: Effort, file: TextIO, started_ns: int) -> list[Told]:
    """Run the wanted checks; each one's lines are in the file before the next begins."""
    from perfkit.measuring.gpucheck.order import CHECKS
    from perfkit.measuring.gpucheck.runner import TOTAL_S, heading, run_checks

    _write(file, heading(bench))

    def tell(told: Told) -> None:
        for line in told.lines:
            _write(file, {"simulated": bench.is_simulated, **line.to_json(told.seconds)})
        if sys.stderr.isatty():
            print(f"{told.check.number:>2} {told.check.name}: {format_duration(told.seconds)}", file=sys.stderr)

    checks = [check for check in CHECKS if check.number in wanted]
    return run_checks(bench, checks, tell, effort, total_s=TOTAL_S - _since_s(started_ns))


def _since_s(started_ns: int) -> float:
    return (REAL_CLOCK.now_ns() - started_ns) / NS_PER_S


def _numbers(text: str | None) -> tuple[int, ...]:
    from perfkit.measuring.gpucheck.order import NUMBERS

    if text is None:
        return NUMBERS
    try:
        wanted = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise ConfigError(f"--only {text!r} is no list of numbers; write for example --only 1,2,10") from None
    unknown = sorted(set(wanted) - set(NUMBERS))
    if unknown:
        raise ConfigError(f"--only names check {unknown[0]}; there are {NUMBERS[0]} to {NUMBERS[-1]}")
    return wanted


def _opened(folder: Path) -> TextIO:
    """A file that was not there before, named by the moment."""
    path = folder / f"gpucheck-{calendar_now().replace(':', '-')}.jsonl"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return path.open("x", encoding="utf-8")
    except OSError as error:
        raise EnvironmentLacks(f"cannot write {path}: {error.strerror}; name another folder by --out") from error


def _write(file: TextIO, row: Mapping[str, Any]) -> None:
    """One line, on the disk before anything else happens."""
    file.write(json.dumps(row) + "\n")
    file.flush()
    os.fsync(file.fileno())


def _table(result: Mapping[str, Any]) -> Iterator[str]:
    """Must lines first, then verdicts."""
    yield f"{result['device']}: {result['environment'].get('note', 'a real GPU')}"
    for kind, title in _KINDS.items():
        yield f"\n{title}"
        lines = [line for line in result["checks"] if line["kind"] == kind]
        for line in lines:
            yield f"  {line['id']:<18}{line['status']:<10}{line['name']}"
            yield f"  {'':<28}{line['reason']}"
    yield f"\n{format_duration(result['seconds'])} in all; every line is in {result['file']}"
