"""Who saves runs and scans until somebody kills it? The victim of test_kill.py.

Reads one line a trial, `runs FOLDER` or `scan FOLDER`, and forks a child that writes there. The child
prints its pid when it begins, then a line for each step; when it is dead this process prints `dead`. Forking saves
the second that the imports take.
"""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pandas
import pyarrow.parquet  # noqa: F401  imported before the fork
from planted import planted_contents

from perfkit.measuring.archive.folder import RunContents, save_run
from perfkit.measuring.archive.scanfolder import create_scan, open_scan
from perfkit.measuring.archive.storedscan import ScanHeader

MOST_RUNS = 1000
POINTS, ROUNDS = 2, 3


def announce(line: str) -> None:
    os.write(1, f"{line}\n".encode())


def large(contents: RunContents) -> RunContents:
    """The same run with enough rows for a save to take a while."""
    requests = pandas.concat([contents.tables["requests"]] * 300, ignore_index=True)
    return dataclasses.replace(contents, tables=contents.tables | {"requests": requests})


def begin() -> None:
    """From here on a kill falls into a save."""
    announce(f"pid {os.getpid()}")


def save_runs(folder: Path) -> None:
    contents = large(planted_contents())
    begin()
    for number in range(MOST_RUNS):
        save_run(folder / f"run-{number:04d}", contents)
        announce(f"saved run-{number:04d}")


def save_scan(folder: Path) -> None:
    points = [{"settings": {"workers": point + 1}} for point in range(POINTS)]
    order = [[(point + index) % POINTS for point in range(POINTS)] for index in range(ROUNDS)]
    plan = {"points": points, "order": order, "seed": 7}
    header = ScanHeader(id="planted", created="2025-01-02T00:00:00+00:00", simulated=True, plan=plan)
    contents = [large(planted_contents(rounds=1, first_round=index)) for index in range(ROUNDS)]
    begin()
    is_there = (folder / "scan.json").exists()
    with open_scan(folder, plan) if is_there else create_scan(folder, header) as scan:
        for part in scan.pending_parts():
            announce(f"started {part.folder_name}")
            scan.save_part(part, contents[part.round])
            announce(f"saved {part.folder_name}")
        if not scan.stored.is_finished:
            scan.finish([{"grade": "sound"}] * POINTS)
        announce("finished")


WORK: dict[str, Callable[[Path], None]] = {"runs": save_runs, "scan": save_scan}


def trial(kind: str, folder: Path) -> None:
    child = os.fork()
    if child == 0:
        try:
            WORK[kind](folder)
            os.read(0, 1)  # wait to be killed, or for the end of the test
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    announce("dead")


if __name__ == "__main__":
    announce("ready")
    # Unbuffered: the child must not inherit, and never read, the next trial's line.
    for line in iter(sys.stdin.buffer.raw.readline, b""):
        kind, _, folder = line.decode().strip().partition(" ")
        trial(kind, Path(folder))
