"""Whatever ends a scan from outside: no orphan, no lost part, no traceback, and a way to go on."""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pandas as pd
import psutil
import pytest

from perfkit.measuring.archive.folder import verify_run
from perfkit.measuring.archive.storedscan import load_scan

SCAN = ("scan", "--model", "noop", "--vary", "workers=1,2", "--rounds", "1", "--seconds", "0.1", "--out", "mine")
WORKERS = (1, 2)


def wait_until(what, timeout_s=60.0):
    """Look twenty times a second."""
    for _ in range(int(timeout_s * 20)):
        if what():
            return
        threading.Event().wait(0.05)
    raise AssertionError("it did not happen in time")


def parts_in(folder):
    """The parts that are whole on the disk."""
    return sorted(path.parent for path in folder.glob("rounds/[0-9]*/run.json"))


def saved(folder):
    """The sent instants of each of them."""
    return {
        part.name: pd.read_parquet(part / "requests.parquet")["scheduled_ns"].to_list() for part in parts_in(folder)
    }


def descendants(process):
    return psutil.Process(process.pid).children(recursive=True)


def assert_complete(folder, before):
    """The scan is finished, each part is there once, and those from before the end are the same rows."""
    scan = load_scan(folder)
    parts = {}
    for point in range(len(WORKERS)):
        run = scan.run(point)
        assert verify_run(run.path) == []
        parts[f"000-{point:03d}"] = run.table("requests")["scheduled_ns"].to_list()
    assert before.items() <= parts.items()
    assert [point["varied"]["workers"] for point in scan.header.points] == list(WORKERS)


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 12))])
def test_a_scan_killed_anywhere_is_resumed_without_measuring_anything_twice(start, tmp_path, seed):
    chance = random.Random(seed)
    folder = tmp_path / "mine"
    first = start(*SCAN)
    done = chance.randrange(len(WORKERS))
    wait_until(lambda: first.poll() is not None or ((folder / "scan.json").exists() and len(parts_in(folder)) >= done))
    threading.Event().wait(chance.uniform(0, 0.8))
    children = descendants(first) if first.poll() is None else []
    first.kill()
    first.wait()
    assert psutil.wait_procs(children, timeout=20)[1] == []
    before, plan = saved(folder), load_scan(folder).header.plan
    second = start(*SCAN, "--resume")
    out, err = second.communicate(timeout=100)
    assert (second.returncode in (0, 3), err) == (True, "")  # 3: the machine was too busy for any point to count
    assert out.splitlines()[-1] == "saved in mine"
    assert_complete(folder, before)
    assert load_scan(folder).header.plan == plan


@pytest.mark.parametrize("to_the_group", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["ctrl-c", "sigterm"])
def test_an_interrupted_scan_exits_with_130_and_one_line_that_says_how_to_go_on(start, tmp_path, to_the_group):
    """Ctrl-C reaches every process of the terminal's group at once, SIGTERM only the command."""
    folder = tmp_path / "mine"
    process = start(*SCAN, start_new_session=True)
    wait_until(lambda: parts_in(folder))
    children = descendants(process)
    assert children != []
    if to_the_group:
        os.killpg(process.pid, signal.SIGINT)
    else:
        process.terminate()
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert err == (
        "perfkit: interrupted; what was measured is kept, go on with the same command and --resume --out mine\n"
    )
    assert psutil.wait_procs(children, timeout=20)[1] == []
    before = saved(folder)
    assert 1 <= len(before) < len(WORKERS)
    assert [verify_run(folder / "rounds" / name) for name in before] == [[]] * len(before)


def test_a_scan_interrupted_before_its_first_part_says_that_nothing_is_there(start, tmp_path):
    process = start("scan", "--model", "slow:Loader", "--payloads", "bodies.jsonl", "--out", "mine")
    (tmp_path / "slow.py").write_text(
        "import pathlib, time\npathlib.Path('loading').touch()\nclass Loader:\n"
        "    def load(self, device, seed): time.sleep(60)\n    def predict(self, inputs): return inputs\n"
    )
    (tmp_path / "bodies.jsonl").write_text('{"input": 1}\n')
    wait_until(lambda: (tmp_path / "loading").exists())
    children = descendants(process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "perfkit: interrupted before anything was measured\n")
    assert psutil.wait_procs(children, timeout=20)[1] == []


def test_an_interrupted_load_or_profile_ends_without_an_orphan(start, tmp_path):
    process = start("profile", "--model", "noop", "--seconds", "30")
    wait_until(lambda: any("py-spy" in child.name() for child in descendants(process)) or process.poll() is not None)
    if process.poll() is not None:
        pytest.skip(process.stderr.read())
    children = descendants(process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "perfkit: interrupted\n")
    assert psutil.wait_procs(children, timeout=20)[1] == []


FULL_DISK = """
import sys
from pathlib import Path
from perfkit.showing.cli.main import main
filler = Path("mine/filler")

def fill():
    with filler.open("wb", buffering=0) as file:
        try:
            while True: file.write(b"x" * 4096)
        except OSError: pass

import perfkit.measuring.scanning.grid as grid
record, measured = grid.record, []
def record_and_fill(*words):
    contents = record(*words)
    measured.append(1)
    if len(measured) == 2: fill()
    return contents
grid.record = record_and_fill
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_a_full_disk_ends_the_scan_with_3_and_one_line_and_the_parts_before_are_whole(tmp_path):
    """A real full disk, in a mount namespace of its own."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "full.py").write_text(FULL_DISK)
    report = f'{sys.executable} -c \'import shutil; shutil.copytree("mine", "kept")\''
    story = f"mount -t tmpfs -o size=4m tmpfs mine && {{ {sys.executable} full.py {' '.join(SCAN)}; code=$?; "
    story += f"rm -f mine/filler; {report}; exit $code; }}"
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[3])}
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", story],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if "mount" in done.stderr or "unshare" in done.stderr:
        pytest.skip(done.stderr)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("perfkit: the disk is full: mine/rounds/")
    assert done.stderr.count("\n") == 1
    parts = sorted((tmp_path / "kept" / "rounds").iterdir())
    assert [verify_run(part) for part in parts] == [[]]


HUNDRED = ("scan", "--model", "noop", "--vary", "workers=1,2", "--rounds", "3", "--seconds", "0.3", "--out", "mine")
KILLS = 100
PART_S = 1.2  # about what a part takes, its own processes included


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_hundred_kills_at_random_instants_lose_no_committed_part(start, tmp_path):
    """Each life of a scan begins where the last one was killed; a finished scan is followed by a new one."""
    chance, folder = random.Random(100), tmp_path / "mine"
    scans = lost = torn_most = kills = parts = 0
    committed = {}
    while kills < KILLS:
        process = start(*HUNDRED, *(["--resume"] if (folder / "scan.json").exists() else []))
        wanted = len(committed) + chance.choice((0, 0, 1, 1, 2))
        wait_until(lambda p=process, n=wanted: p.poll() is not None or len(parts_in(folder)) >= n, 100)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(chance.uniform(0.0, PART_S))
        kills += process.poll() is None
        process.kill()
        process.communicate()
        there = {part.name: (part / "run.json").read_bytes() for part in parts_in(folder)}
        torn_most = max(torn_most, len(list(folder.glob("rounds/.*.partial"))))
        if (folder / "scan.json").exists() and load_scan(folder).is_finished:
            assert [verify_run(path) for path in sorted(folder.glob("points/*"))] == [[]] * len(WORKERS)
            shutil.rmtree(folder)
            committed, scans = {}, scans + 1
            continue
        lost += sum(there.get(name) != data for name, data in committed.items())
        parts += len(there) - len(committed)
        assert [verify_run(part) for part in parts_in(folder)] == [[]] * len(there)
        committed = there
    print(f"\n{kills} kills, {scans} scans finished: {lost} of {parts} parts lost, at most {torn_most} torn at once")
    assert (lost, torn_most <= 1, scans >= 1, parts >= KILLS // 4) == (0, True, True, True)
