"""How does a notebook measure a device without sharing Python's lock with it? In a child process, check by check."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from perfkit import children
from perfkit.errors import EnvironmentLacks

SIMULATED = "simulated:h200"
_JUDGED = (0, 1, 5)  # exit codes of a check that ran: all passed, one failed, one left open
_LAST_WORDS = 400  # characters of what a child said before it failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What some checks found on a device: their lines as `perfkit gpucheck --json` prints them."""

    device: str
    simulated: bool
    lines: tuple[Mapping[str, Any], ...]

    def figures(self, line_id: str) -> Mapping[str, Any]:
        """The figures of one line, such as `5.pinned`; raises EnvironmentLacks when it could not be measured."""
        line = next(line for line in self.lines if line["id"] == line_id)
        if not line["figures"]:
            raise EnvironmentLacks(f"check {line_id} gave no figures: {line['reason']}")
        figures: Mapping[str, Any] = line["figures"]
        return figures


def present_device() -> str:
    """`cuda` where torch finds a GPU, else the simulated H200."""
    import torch

    return "cuda" if torch.cuda.is_available() else SIMULATED


def check_device(device: str, *numbers: int, effort: float = 1.0) -> Findings:
    """Run some of the checks of `perfkit gpucheck`, with a share of the specified repetitions.

    Blocks until they are done. Raises EnvironmentLacks.
    """
    with tempfile.TemporaryDirectory(prefix="perfkit-device-") as folder:
        words = ["--device", device, "--only", ",".join(map(str, numbers)), "--effort", str(effort), "--json"]
        child = children.spawn(
            [sys.executable, "-P", "-m", "perfkit", "gpucheck", *words, "--out", folder],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=children.same_perfkit(),
        )
        try:
            printed, said = child.communicate()
        finally:
            children.stop(child)
    if child.returncode not in _JUDGED:
        words_left = said.decode("utf-8", "replace").strip()[-_LAST_WORDS:]
        raise EnvironmentLacks(f"the check of {device} ended with exit code {child.returncode}: {words_left}")
    document = json.loads(printed)
    return Findings(device=document["device"], simulated=document["simulated"], lines=tuple(document["checks"]))
