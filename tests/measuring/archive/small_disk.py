"""What does a full, then a read-only disk do to a save? Run inside a mount namespace by test_durable.py."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

from planted import planted_contents

from perfkit.errors import ArchiveError
from perfkit.measuring.archive.folder import save_run, verify_run


def refusal(folder: Path, log: bytes) -> str:
    try:
        save_run(folder, dataclasses.replace(planted_contents(), logs={"large.log": log}))
    except ArchiveError as error:
        return str(error)
    return "saved"


def main(disk: Path) -> None:
    earlier = save_run(disk / "earlier", planted_contents())
    full = refusal(disk / "large", os.urandom(2 << 20))
    second = refusal(disk / "second", b"")
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    read_only = refusal(disk / "third", b"")
    found = {"full": full, "second": second, "read_only": read_only}
    print(json.dumps(found | {"problems": verify_run(earlier), "left": sorted(os.listdir(disk))}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
