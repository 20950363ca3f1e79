"""How does one generator process run? `python -m perfkit.measuring.load.process SPEC.json`

It writes samples while it runs and a report when it ends; SIGTERM and SIGINT end it early and
cleanly. Exit codes are perfkit's; the last line on stderr says what was wrong.
"""

from __future__ import annotations

import gc
import resource
import signal
import sys
from pathlib import Path

from perfkit.clock import REAL_CLOCK
from perfkit.errors import EnvironmentLacks, PerfkitError
from perfkit.measuring.load.engine import Engine
from perfkit.measuring.load.gate import await_instant
from perfkit.measuring.load.placement import place_process
from perfkit.measuring.load.report import describe_phase, write_report
from perfkit.measuring.load.samples import SampleWriter
from perfkit.measuring.load.script import write_script
from perfkit.measuring.load.spec import LoadSpec, read_spec
from perfkit.measuring.load.target import check_permission, find_target


def run_phase(spec: LoadSpec) -> None:
    """Run one phase of load and leave its samples and report; raises PerfkitError."""
    target = find_target(spec.url)
    check_permission(target, spec.load, spec.allow_remote)
    script = write_script(spec, target)
    _allow_many_connections()
    placement = place_process(spec)
    try:
        samples = SampleWriter(spec.samples)
        engine = Engine(spec, target, script, samples)
        _hold_still()
        start_ns = REAL_CLOCK.now_ns() if spec.gate is None else await_instant(spec.gate)
        _stop_on_signals(engine)
        engine.run(start_ns)
        samples.close()
        engine.close()
        write_report(describe_phase(spec, engine, placement), spec.report)
    except OSError as error:
        raise EnvironmentLacks(
            f"cannot write {spec.samples} or {spec.report}: {error.strerror}; give a writable folder with free space"
        ) from error


def _stop_on_signals(engine: Engine) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: engine.ask_to_stop())


def _allow_many_connections() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _hold_still() -> None:
    # The request path makes no reference cycles; a collection would only show up as latency.
    gc.collect()
    gc.freeze()
    gc.disable()


def main(words: list[str]) -> int:
    """Run the spec that the command line names; returns the exit code."""
    try:
        run_phase(read_spec(Path(words[0])))
    except PerfkitError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
