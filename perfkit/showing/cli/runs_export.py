"""`perfkit runs export`: how does a run reach another tool?"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfkit.errors import ConfigError
from perfkit.showing.cli import runs

if TYPE_CHECKING:
    from perfkit.measuring.exporting.subject import Subject

# What each form writes: a file or folder named after the run, or (without an ending) to an address.
ENDINGS = {
    "csv": "-csv",
    "json": ".json",
    "parquet": "-parquet",
    "report": ".html",
    "perfetto": ".trace.json",
    "speedscope": "-speedscope",
    "mlflow": "",
    "otlp": "",
}
_DEFAULT_REQUESTS = 20_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of the action."""
    runs.add_wanted(parser)
    parser.add_argument("--as", dest="form", required=True, choices=list(ENDINGS), help="in which form")
    parser.add_argument("--out", type=Path, metavar="PATH", help="file or new folder (default: named after the run)")
    parser.add_argument("--to", metavar="URL", help="where mlflow (also a folder) and otlp send to")
    parser.add_argument("--point", type=int, metavar="N", help="only this point of a scan, counted from 0")
    parser.add_argument(
        "--requests",
        type=int,
        default=_DEFAULT_REQUESTS,
        metavar="N",
        help=f"how many requests perfetto and otlp take, the first ones (default {_DEFAULT_REQUESTS})",
    )
    runs.add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Write or send, and say what and where."""
    from perfkit.measuring.archive.runs import find_run
    from perfkit.measuring.exporting.subject import subject_of
    from perfkit.showing.cli import console

    _check(options)
    entry = find_run(options.folder, options.wanted)
    subject = subject_of(entry, options.point)
    number = "" if options.point is None else f"-{options.point:03d}"
    out = options.out or Path(f"{entry.id}{number}{ENDINGS[options.form]}")
    if ENDINGS[options.form] and out.exists():
        raise ConfigError(f"{out} is there already; name another place after --out")
    told = _FORMS[options.form](subject, out, options)
    if options.json:
        console.print_json({"schema": 1, "simulated": entry.simulated, "run": entry.id, "as": options.form, **told})
    else:
        _tell(told)
    return 0


def _check(options: argparse.Namespace) -> None:
    sends = not ENDINGS[options.form]
    if sends and not options.to:
        raise ConfigError(f"--as {options.form} needs --to: where it goes, for example {_EXAMPLES[options.form]}")
    if options.to and not sends:
        raise ConfigError(f"--to is for mlflow and otlp; --as {options.form} writes to --out")
    if options.out and sends:
        raise ConfigError(f"--out is for files; --as {options.form} sends to --to")
    if options.requests < 1:
        raise ConfigError(f"--requests is {options.requests}; give 1 or more")


_EXAMPLES = {"mlflow": "--to mlruns", "otlp": "--to http://127.0.0.1:4318"}
_Told = dict[str, Any]


def _tell(told: _Told) -> None:
    from perfkit.showing.cli import console

    for file in told.get("files", ()):
        console.say(f"written: {file}")
    if "to" in told:
        console.say(f"sent to {told['to']}")
    if told.get("requests", 0) > told.get("requests_taken", 0):
        console.say(f"the first {told['requests_taken']:,} of {told['requests']:,} requests; --requests N takes more")


def _tables(name: str) -> Callable[[Subject, Path, argparse.Namespace], _Told]:
    def write(subject: Subject, out: Path, options: argparse.Namespace) -> _Told:
        from perfkit.measuring.exporting import tables

        return {"files": [str(path) for path in getattr(tables, name)(subject, out)]}

    return write


def _report(subject: Subject, out: Path, options: argparse.Namespace) -> _Told:
    from perfkit.showing.report.collect import page_of_folder
    from perfkit.showing.report.page import write_page

    folder = subject.entry.path if options.point is None else subject.one.path
    write_page(out, page_of_folder(folder))
    return {"files": [str(out)]}


def _perfetto(subject: Subject, out: Path, options: argparse.Namespace) -> _Told:
    from perfkit.measuring.exporting.trace import write_trace

    taken, total = write_trace(subject.one, out, options.requests)
    return {"files": [str(out)], "requests_taken": taken, "requests": total}


def _speedscope(subject: Subject, out: Path, options: argparse.Namespace) -> _Told:
    from perfkit.measuring.exporting.speedscope import write_speedscope

    return {"files": [str(path) for path in write_speedscope(subject.one, out)]}


def _mlflow(subject: Subject, out: Path, options: argparse.Namespace) -> _Told:
    from perfkit.measuring.exporting.mlflow import log_to_mlflow

    return {"to": options.to, "mlflow_runs": log_to_mlflow(subject, options.to)}


def _otlp(subject: Subject, out: Path, options: argparse.Namespace) -> _Told:
    from perfkit.measuring.exporting.otlp import send_otlp

    taken, total = send_otlp(subject.one, options.to, options.requests)
    return {"to": options.to, "requests_taken": taken, "requests": total}


_FORMS: dict[str, Callable[[Subject, Path, argparse.Namespace], _Told]] = {
    "csv": _tables("write_csv"),
    "json": _tables("write_json"),
    "parquet": _tables("write_parquet"),
    "report": _report,
    "perfetto": _perfetto,
    "speedscope": _speedscope,
    "mlflow": _mlflow,
    "otlp": _otlp,
}
