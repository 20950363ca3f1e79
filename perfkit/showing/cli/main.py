"""Which command was asked for, and how does its end become an exit code?

A command's module is imported only when it is run, so that `perfkit --help` stays quick.
"""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from perfkit import __version__
from perfkit.errors import ConfigError, EnvironmentLacks, PerfkitError

COMMANDS = {
    "demo": "serve a real model, scan threads and batch sizes, write a report (3 minutes)",
    "serve": "run the reference server",
    "load": "send load to a service and report throughput and latency",
    "scan": "vary settings or load and show the curve, its knee and the best point",
    "profile": "record flame graphs of a service under load",
    "calibrate": "measure a model on this machine and write a preset that simulates it",
    "gpucheck": "check perfkit's device side on this machine's GPU (under 4 minutes)",
    "compare": "say whether one setting is faster or slower than another, and how sure that is",
    "gate": "fail when a change made things worse than allowed: for continuous integration",
    "report": "write an HTML report of archived runs or scans",
    "runs": "list, show, export and prune archived runs, scans and comparisons",
    "import": "read result files, profiles and traces of other tools",
    "size": "what the articles' sizing formulas give, beside what a run or scan measured",
    "audit": "name what cannot be right in a result file or a published table",
}
_MODULES = {"import": "importing"}  # a module cannot be called import
_INTERRUPTED = 130
_VOID = 3


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code: 0, 130 after an interruption, else that of the error's kind."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    signal.signal(signal.SIGTERM, _interrupt)  # end as on Ctrl-C: what runs is closed, what is measured is kept
    try:
        options = _parse(arguments)
        code: int = options.run(options)
        return code
    except PerfkitError as error:
        print(f"perfkit: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt as interrupt:
        print(f"perfkit: {str(interrupt) or 'interrupted'}", file=sys.stderr)
        return _INTERRUPTED
    except BrokenPipeError:  # the reader of our output has left, as in `perfkit runs | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # such as a full temporary folder, which no part of perfkit expects
        print(f"perfkit: the system refused: {error}; make room or give access, then try again", file=sys.stderr)
        return EnvironmentLacks.exit_code


def exit_code(points: Sequence[Mapping[str, Any]]) -> int:
    """0 when at least one point counts, 3 when all are void."""
    return 0 if any(point["grade"] != "void" for point in points) else _VOID


class _Parser(argparse.ArgumentParser):
    """One line for a wrong argument, like for every other wrong input."""

    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"{message}; {self.prog} --help tells what there is")


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = _Parser(
        prog="perfkit",
        description="Find where each millisecond of a threaded inference service goes.",
        epilog="perfkit COMMAND --help tells a command's options.",
    )
    parser.add_argument("--version", action="version", version=f"perfkit {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    wanted = next((word for word in arguments if not word.startswith("-")), "")
    for name, text in COMMANDS.items():
        command = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        if name == wanted:
            module = importlib.import_module(f"perfkit.showing.cli.{_MODULES.get(name, name)}")
            module.add_arguments(command)
            command.set_defaults(run=module.run)
    return parser.parse_args(arguments)


def _interrupt(number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt
