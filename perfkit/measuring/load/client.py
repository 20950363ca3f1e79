"""How does a run start a generator process, and learn how it went?"""

from __future__ import annotations

import contextlib
import dataclasses
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from perfkit import children
from perfkit.errors import ConfigError, EnvironmentLacks, PerfkitError, TargetFailed
from perfkit.measuring.load.gate import make_gate, open_gates
from perfkit.measuring.load.spec import LoadSpec, write_spec
from perfkit.measuring.load.target import check_permission, find_target

_KINDS: dict[int, type[PerfkitError]] = {kind.exit_code: kind for kind in (ConfigError, EnvironmentLacks, TargetFailed)}
_LOOK_AGAIN_S = 0.02


def start(spec: LoadSpec, folder: Path) -> GeneratorProcess:
    """Start a generator process; its spec and log go to a folder. Raises ConfigError, TargetFailed."""
    check_permission(find_target(spec.url), spec.load, spec.allow_remote)
    spec_path = folder / f"{spec.report.stem}.spec.json"
    write_spec(spec, spec_path)
    log_path = folder / f"{spec.report.stem}.log"
    command = [sys.executable, "-P", "-m", "perfkit.measuring.load.process", str(spec_path)]
    with log_path.open("wb") as log:
        child = children.spawn(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=children.same_perfkit())
    return GeneratorProcess(child, spec, log_path)


def start_together(specs: Sequence[LoadSpec], folder: Path, stops: contextlib.ExitStack) -> list[GeneratorProcess]:
    """Start a generator for each spec; several begin at the same instant, once all of them are ready.

    All are stopped when `stops` unwinds. Raises as `start`.
    """
    if len(specs) == 1:
        return [stops.enter_context(start(specs[0], folder))]
    gates = [make_gate(folder / f"{spec.report.stem}.gate") for spec in specs]
    gated = [dataclasses.replace(spec, gate=gate) for spec, gate in zip(specs, gates, strict=True)]
    generators = [stops.enter_context(start(spec, folder)) for spec in gated]
    open_gates(gates, lambda place: not generators[place].wait_briefly(_LOOK_AGAIN_S))
    return generators


class GeneratorProcess:
    """A running generator. Use it in a `with` block: it is stopped at the end whatever happens."""

    def __init__(self, child: subprocess.Popen[bytes], spec: LoadSpec, log_path: Path) -> None:
        self._child = child
        self._log_path = log_path
        self.spec = spec

    @property
    def pid(self) -> int:
        """The process id, for whoever watches the generator."""
        return self._child.pid

    def wait_briefly(self, timeout_s: float) -> bool:
        """Wait up to so many seconds; returns whether the process has ended."""
        try:
            self._child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def report(self) -> dict[str, Any]:
        """The report of an ended phase. Raises what the process failed with."""
        code = self._child.wait()
        if code:
            kind = _KINDS.get(code, EnvironmentLacks)
            raise kind(self._last_words() or f"the load generator ended with exit code {code}; see {self._log_path}")
        report: dict[str, Any] = orjson.loads(self.spec.report.read_bytes())
        return report

    def stop(self) -> None:
        """End the phase early; samples and report are still written. Safe to call twice."""
        children.stop(self._child)

    def _last_words(self) -> str:
        lines = self._log_path.read_text("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else ""

    def __enter__(self) -> GeneratorProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
