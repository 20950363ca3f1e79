"""What does a full, then a read-only disk do to a save? Run inside a mount namespace by test_durable.py."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from planted import planted_contents

from perfkit.errors import ArchiveError
from perfkit.measuring.archive.folder import save_run, verify_run
from perfkit.measuring.archive.scanfolder import create_scan, open_scan
from perfkit.measuring.archive.storedscan import ScanHeader, load_scan


def refusal(folder: Path, log: bytes) -> str:
    try:
        save_run(folder, dataclasses.replace(planted_contents(), logs={"large.log": log}))
    except ArchiveError as error:
        return str(error)
    return "saved"


def scan_on(disk: Path) -> dict[str, object]:
    """A scan that fills the disk with its parts, gets room, fills it again with its points, gets room and finishes."""
    plan = {"points": [{"settings": {"workers": number}} for number in range(4)], "order": [[0, 1, 2, 3]]}
    header = ScanHeader(id="planted", created="2025-01-02T00:00:00+00:00", simulated=True, plan=plan)
    contents = dataclasses.replace(planted_contents(rounds=1), logs={"l.log": os.urandom(300_000)})
    told: list[str] = []
    done: list[int] = []
    create_scan(disk / "scan", header).close()
    for size in ("900k", "1500k", "8m"):
        subprocess.run(["mount", "-o", f"remount,size={size}", str(disk)], check=True)
        with open_scan(disk / "scan", plan) as scan:
            try:
                for part in scan.pending_parts():
                    scan.save_part(part, contents)
                scan.finish([{"grade": "sound"}] * 4)
            except ArchiveError as error:
                told.append(str(error))
            saved = load_scan(disk / "scan")
            done.append(len(saved.done_parts()))
            folders = (
                [saved.point_folder(point) for point in range(4)]
                if saved.is_finished
                else [saved.part_folder(part) for part in saved.done_parts()]
            )
            assert [verify_run(folder) for folder in folders] == [[]] * done[-1]
    shutil.rmtree(disk / "scan")
    subprocess.run(["mount", "-o", "remount,size=1m", str(disk)], check=True)
    return {"scan_told": told, "scan_done": done, "scan_finished": saved.is_finished}


def main(disk: Path) -> None:
    scanned = scan_on(disk)
    earlier = save_run(disk / "earlier", planted_contents())
    full = refusal(disk / "large", os.urandom(2 << 20))
    second = refusal(disk / "second", b"")
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    read_only = refusal(disk / "third", b"")
    found = {"full": full, "second": second, "read_only": read_only}
    print(json.dumps(found | scanned | {"problems": verify_run(earlier), "left": sorted(os.listdir(disk))}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
