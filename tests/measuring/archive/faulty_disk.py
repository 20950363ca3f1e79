"""What becomes of a scan whose disk refuses at any one call? Run with faulty_disk.so preloaded by test_faulty_disk.py.

Reads one line a trial, `CALL ERRNO LASTING`; prints what was said, what was safe before, what is lost, and whether
the scan could be finished afterwards.
"""

from __future__ import annotations

import ctypes
import json
import shutil
import sys
from pathlib import Path
from typing import Any

from planted import planted_contents

from perfkit.errors import ArchiveError
from perfkit.measuring.archive.folder import verify_run
from perfkit.measuring.archive.scanfolder import ScanWriter, create_scan, open_scan
from perfkit.measuring.archive.storedscan import ScanHeader, load_scan

POINTS, ROUNDS = 2, 2
PLAN: dict[str, Any] = {"points": [{"settings": {"workers": 1}}, {"settings": {"workers": 2}}], "order": [[0, 1]] * 2}
PARTS = [planted_contents(rounds=1, first_round=index) for index in range(ROUNDS)]
DISK = ctypes.CDLL(None)


def work(scan: ScanWriter, saved: list[str]) -> None:
    """Everything that is left of the scan; `saved` says what was on the disk for certain."""
    for part in scan.pending_parts():
        scan.save_part(part, PARTS[part.round])
        saved.append(part.folder_name)
    if not scan.stored.is_finished:
        scan.finish([{"grade": "sound"}] * POINTS)
    saved.append("finished")


def trial(folder: Path, call: int, number: int, lasting: int) -> dict[str, Any]:
    header = ScanHeader(id="planted", created="2025-01-02T00:00:00+00:00", simulated=True, plan=PLAN)
    saved: list[str] = []
    said = ""
    with create_scan(folder, header) as scan:
        first = scan.pending_parts()[0]
        scan.save_part(first, PARTS[0])
        saved.append(first.folder_name)
        DISK.fault_arm(str(folder).encode(), ctypes.c_long(call), number, lasting)
        try:
            work(scan, saved)
        except ArchiveError as error:
            said = str(error)
        finally:
            calls = DISK.fault_disarm()
    return {"calls": calls, "said": said, "lost": lost(folder, saved), "after": resumed(folder)}


def lost(folder: Path, saved: list[str]) -> list[str]:
    """What was on the disk and is not whole any more."""
    scan = load_scan(folder)
    if "finished" in saved and not scan.is_finished:
        return ["finished"]
    if scan.is_finished:
        return [problem for point in range(POINTS) for problem in verify_run(scan.point_folder(point))]
    done = {part.folder_name: scan.part_folder(part) for part in scan.done_parts()}
    gone = [name for name in saved if name not in done]
    return gone + [problem for path in done.values() for problem in verify_run(path)]


def resumed(folder: Path) -> list[Any]:
    """What the folder holds, and how many rows each point has, once the disk is well and the scan was resumed."""
    with open_scan(folder, PLAN) as scan:
        work(scan, [])
    finished = load_scan(folder)
    rows = [len(finished.run(point).table("requests")) for point in range(POINTS)]
    return [sorted(path.name for path in folder.iterdir()), rows]


def main(parent: Path) -> None:
    print("ready", flush=True)
    for line in sys.stdin:
        call, number, lasting = map(int, line.split())
        folder = parent / "scan"
        print(json.dumps(trial(folder, call, number, lasting)), flush=True)
        shutil.rmtree(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
