"""Is everything on the disk before it becomes visible, and does a refusing disk leave no trace?"""

from __future__ import annotations

import errno
import json
import os
import resource
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import perfkit
from perfkit.errors import ArchiveError
from perfkit.measuring.archive import durable
from perfkit.measuring.archive.folder import save_run, verify_run

SMALL_DISK = Path(__file__).with_name("small_disk.py")
NAMESPACES = (["unshare", "--mount"], ["unshare", "--user", "--map-root-user", "--mount"])


def test_every_file_is_synced_before_the_rename_and_the_parent_after_it(tmp_path, planted, monkeypatch):
    steps = []

    def fsync(descriptor):
        steps.append(("synced", os.readlink(f"/proc/self/fd/{descriptor}")))

    def rename(source, target):
        steps.append(("renamed", str(source)))
        os.rename(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "rename", rename)
    run = save_run(tmp_path / "runs" / "run-1", planted())
    monkeypatch.undo()
    moment = next(index for index, (step, _) in enumerate(steps) if step == "renamed")
    temporary = steps[moment][1]
    assert steps[0] == ("synced", str(tmp_path))
    inside = {str(path.relative_to(run)) for path in run.rglob("*")} | {"."}
    assert {os.path.relpath(path, temporary) for _, path in steps[1:moment]} == inside
    assert steps[moment + 1 :] == [("synced", str(tmp_path / "runs"))]


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "the disk is full: .*run-2 needs .* KiB, .* free; make room, or choose another disk"),
        (errno.EDQUOT, "the disk is full"),
        (errno.EROFS, "cannot write .*run-2: Read-only file system; choose a folder that you may write to"),
        (errno.EACCES, "cannot write .*run-2: Permission denied; choose a folder"),
        (errno.EIO, "cannot write .*run-2: Input/output error"),
    ],
)
@pytest.mark.parametrize("step", ["mkdir", "fsync", "rename"])
def test_a_refusal_at_any_step_says_what_to_do_and_leaves_no_trace(tmp_path, planted, monkeypatch, number, words, step):
    earlier = save_run(tmp_path / "run-1", planted())

    def refuse(*_given, **_named):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os if step == "fsync" else Path, step, refuse)
        with pytest.raises(ArchiveError, match=words) as caught:
            save_run(tmp_path / "run-2", planted())
    assert "what was saved before is untouched" in str(caught.value)
    assert os.listdir(tmp_path) == ["run-1"]
    assert verify_run(earlier) == []


def fill(folder, meanwhile):
    with durable.new_folder(folder, lambda: 0) as temporary:
        (temporary / "mine").write_text("mine")
        meanwhile()


def test_an_interrupt_while_saving_leaves_no_trace(tmp_path):
    def interrupt():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fill(tmp_path / "run-1", interrupt)
    assert os.listdir(tmp_path) == []


def test_a_folder_that_appears_meanwhile_is_not_overwritten(tmp_path):
    folder = tmp_path / "run-1"

    def be_there_first():
        folder.mkdir()
        (folder / "theirs").write_text("theirs")

    with pytest.raises(ArchiveError, match="never overwritten"):
        fill(folder, be_there_first)
    assert os.listdir(tmp_path) == ["run-1"]
    assert os.listdir(folder) == ["theirs"]


def test_a_parent_that_is_a_file_is_named(tmp_path, planted):
    (tmp_path / "file").write_text("")
    with pytest.raises(ArchiveError, match=r"cannot write .*file/run-1: (Not a directory|File exists)"):
        save_run(tmp_path / "file" / "run-1", planted())


def test_a_replaced_file_is_the_old_or_the_new_one_never_half(tmp_path, monkeypatch):
    where = tmp_path / "scan.json"
    durable.replace_file(where, b"old")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError(errno.EIO, "Input/output error")))
        with pytest.raises(ArchiveError, match=r"cannot write .*scan\.json: Input/output error"):
            durable.replace_file(where, b"new")
    assert (where.read_bytes(), os.listdir(tmp_path)) == (b"old", ["scan.json"])
    durable.replace_file(where, b"new")
    assert (where.read_bytes(), os.listdir(tmp_path)) == (b"new", ["scan.json"])


def test_only_what_a_killed_writer_left_is_removed(tmp_path):
    durable.temporary_beside(tmp_path / "run-1").mkdir()
    durable.temporary_beside(tmp_path / "scan.json").write_text("{")
    for name in (".hidden", "run.partial", "run-1"):
        (tmp_path / name).mkdir()
    assert len(durable.remove_torn(tmp_path)) == 2
    assert sorted(os.listdir(tmp_path)) == [".hidden", "run-1", "run.partial"]
    assert durable.remove_torn(tmp_path / "absent") == []


def limit_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))


def test_a_file_above_the_limit_of_the_process_is_refused_without_a_trace(tmp_path):
    """The real kernel's refusal (EFBIG; Python ignores the signal that comes with it)."""
    program = (
        "import dataclasses, os, sys; from pathlib import Path; from planted import planted_contents;"
        "from perfkit.errors import ArchiveError; from perfkit.measuring.archive.folder import save_run\n"
        "disk = Path(sys.argv[1]); save_run(disk / 'earlier', planted_contents())\n"
        "try: save_run(disk / 'large', dataclasses.replace(planted_contents(), logs={'l.log': os.urandom(300_000)}))\n"
        "except ArchiveError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        env=environment(),
        preexec_fn=limit_files,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(f"cannot write {tmp_path}/large: File too large; put that right")
    assert os.listdir(tmp_path) == ["earlier"]
    assert verify_run(tmp_path / "earlier") == []


def environment() -> dict[str, str]:
    places = (str(Path(perfkit.__file__).parents[1]), str(SMALL_DISK.parent), os.environ.get("PYTHONPATH", ""))
    return os.environ | {"PYTHONPATH": os.pathsep.join(places)}


@pytest.fixture(scope="session")
def namespace(tmp_path_factory) -> list[str]:
    """The command that gives a process mounts of its own."""
    place = shlex.quote(str(tmp_path_factory.mktemp("mount")))
    for command in NAMESPACES:
        attempt = [*command, "sh", "-c", f"mount -t tmpfs tmpfs {place}"]
        if subprocess.run(attempt, capture_output=True, check=False).returncode == 0:
            return command
    return pytest.skip("no mount of a small file system permitted here")


def test_a_real_full_and_a_real_read_only_disk_lose_nothing_that_was_saved(tmp_path, namespace):
    place = shlex.quote(str(tmp_path))
    program = f"mount -t tmpfs -o size=1m tmpfs {place} && exec {sys.executable} {shlex.quote(str(SMALL_DISK))} {place}"
    done = subprocess.run(
        [*namespace, "sh", "-c", program], env=environment(), capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    assert found["full"].startswith(f"the disk is full: {tmp_path}/large needs 2.0")
    assert "KiB are free" in found["full"]
    assert found["second"] == "saved"
    assert found["read_only"].startswith(f"cannot write {tmp_path}/third: Read-only file system; choose a folder")
    assert (found["problems"], found["left"]) == ([], ["earlier", "second"])
    assert [told.partition(":")[0] for told in found["scan_told"]] == ["the disk is full"] * 2
    assert (found["scan_done"], found["scan_finished"]) == ([2, 4, 4], True)
