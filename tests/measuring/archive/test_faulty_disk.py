"""Does a disk that refuses, at whatever call and for whatever reason, lose nothing that was saved?

A real scan is saved through a C library that lets the n-th call below the scan's folder fail: once, or from
there on. The default run takes some of the calls, the slow one all of them.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import perfkit
from perfkit import children

SOURCE = Path(__file__).with_name("faulty_disk.c")
PROGRAM = Path(__file__).with_name("faulty_disk.py")
REASONS = {
    errno.ENOSPC: "the disk is full: ",
    errno.EIO: "Input/output error; put that right or choose another folder with --out",
    errno.EROFS: "Read-only file system; choose a folder that you may write to with --out",
}
UNTOUCHED = "(what was saved before is untouched)"
WHOLE = [["points", "scan.json", "scan.lock"], [6, 6]]
MOST_CALLS = 2_000


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The preloaded library."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler here")
    path = tmp_path_factory.mktemp("library") / "faulty_disk.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", path, SOURCE, "-ldl"], check=True)
    return path


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder in memory where there is one: a real disk spends its time on syncing."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path_factory.mktemp("disk")
        return
    with tempfile.TemporaryDirectory(dir=memory, prefix="perfkit-") as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def disk(library, place):
    """Answers `disk(call, errno, lasting)` with what became of the scan."""
    where = f"{Path(perfkit.__file__).parents[1]}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    process = children.spawn(
        [sys.executable, str(PROGRAM), str(place)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": where, "LD_PRELOAD": str(library)},
    )
    assert process.stdout.readline() == b"ready\n"

    def ask(call, number, lasting):
        process.stdin.write(f"{call} {number} {int(lasting)}\n".encode())
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    yield ask
    process.stdin.close()
    process.stdout.close()
    children.stop(process)


def test_a_disk_that_refuses_nothing_is_asked_some_hundred_times(disk):
    found = disk(MOST_CALLS, errno.EIO, False)
    assert (found["said"], found["lost"], found["after"]) == ("", [], WHOLE)
    assert 100 < found["calls"] < MOST_CALLS


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "from there on"])
@pytest.mark.parametrize("number", REASONS, ids=errno.errorcode.get)
@pytest.mark.parametrize("stride", [61, pytest.param(1, marks=[pytest.mark.slow, pytest.mark.timeout(600)])])
def test_a_refusal_at_any_call_is_told_and_loses_nothing(disk, number, lasting, stride):
    calls = disk(MOST_CALLS, number, False)["calls"]
    told = 0
    for call in range(1, calls + 1, stride):
        found = disk(call, number, lasting)
        assert (call, found["lost"], found["after"]) == (call, [], WHOLE)
        if found["said"]:  # not so when the last leftovers could not be removed: the scan is finished by then
            assert REASONS[number] in found["said"]
            assert UNTOUCHED in found["said"]
            told += 1
    print(f"\n{errno.errorcode[number]}, {'lasting' if lasting else 'once'}: {told} refusals told, at {calls} calls")
    assert told >= len(range(1, calls + 1, stride)) * 0.8
