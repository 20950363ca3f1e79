"""The command line, called in this process or started as one of its own, with what it printed."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import perfkit as package
from perfkit.measuring.service import Service, launch
from perfkit.showing.cli.main import main

ROOT = Path(package.__file__).parents[1]


@dataclasses.dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document on stdout; anything beside it is an error."""
        return json.loads(self.out)

    @property
    def points(self) -> list[dict[str, Any]]:
        """The points of a scan's document, once its exit code fits their grades: a busy machine may void them all."""
        points = self.document["points"]
        is_usable = any(point["grade"] != "void" for point in points)
        assert (self.code, self.err) == (0 if is_usable else 3, "")
        return list(points)

    @property
    def line(self) -> str:
        """The one line on stderr."""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        return lines[0]


@pytest.fixture
def perfkit(capfd, monkeypatch, tmp_path) -> Iterator[Callable[..., Ended]]:
    """Calls a command in this process, in an empty working folder: perfkit("scan", "--model", "noop")."""
    monkeypatch.chdir(tmp_path)
    before = signal.getsignal(signal.SIGTERM)

    def call(*words: object) -> Ended:
        capfd.readouterr()
        try:
            code = main([str(word) for word in words])
        except SystemExit as end:  # argparse ends --help and --version so
            code = int(end.code or 0)
        out, err = capfd.readouterr()
        return Ended(code, out, err)

    yield call
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def start(tmp_path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a command as a process of its own, as a shell does; whatever still runs is killed at the end."""
    started: list[subprocess.Popen[str]] = []

    def call(*words: object, **popen: Any) -> subprocess.Popen[str]:
        environment = os.environ | {"PYTHONPATH": str(ROOT)} | popen.pop("env", {})
        command = [sys.executable, "-m", "perfkit", *map(str, words)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen(command, env=environment, **{"cwd": tmp_path, **pipes, **popen})
        started.append(process)
        return process

    yield call
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture(scope="session")
def noop_server() -> Iterator[Service]:
    """One reference server for all commands that go to a URL."""
    with launch(model="noop") as service:
        yield service


@pytest.fixture
def bodies(tmp_path) -> Path:
    """A file of request bodies."""
    path = tmp_path / "bodies.jsonl"
    path.write_text('{"input": 1}\n{"input": 2}\n')
    return path
