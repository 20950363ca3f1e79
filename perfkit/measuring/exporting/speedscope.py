"""How do recorded stacks open in speedscope? One file for each kind of samples, one profile in it for each thread.

The kinds (running, holding the GIL, all) answer different questions, so they are never put into one file. Samples
come at random gaps about the sampling rate: each weighs one period of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perfkit import __version__
from perfkit.errors import ArchiveError
from perfkit.measuring.archive import documents, durable
from perfkit.measuring.archive.folder import StoredRun

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def write_speedscope(run: StoredRun, folder: Path) -> list[Path]:
    """`MODE.speedscope.json` for each recording of a run, in a new folder; raises ArchiveError, also without any."""
    if not run.stacks:
        raise ArchiveError(f"{run.path} holds no stacks; perfkit profile records some")
    with durable.new_folder(folder, lambda: sum(facts.bytes for facts in run.files.values())) as temporary:
        for mode in run.stacks:
            document = speedscope_document(run.stack(mode), f"{run.manifest.title} · {mode} · {run.manifest.id}")
            data = documents.encode(document, f"the stacks of mode {mode}")
            (temporary / f"{mode}.speedscope.json").write_bytes(data)
    return sorted(folder.iterdir())


def speedscope_document(stacks: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A stacks document as a speedscope file; a thread without a sample has no profile."""
    samples, period_s = stacks["samples"], 1 / stacks["rate_hz"]
    of_thread: dict[int, list[int]] = {}
    for thread, stack in zip(samples["thread"], samples["stack"], strict=True):
        of_thread.setdefault(thread, []).append(stack)
    return {
        "$schema": _SCHEMA,
        "name": name,
        "exporter": f"perfkit {__version__}",
        "activeProfileIndex": 0,
        "shared": {"frames": [dict(frame) for frame in stacks["frames"]]},
        "profiles": [
            {
                "type": "sampled",
                "name": f"{stacks['threads'][thread]['name'] or 'thread'} ({stacks['threads'][thread]['id']})",
                "unit": "seconds",
                "startValue": 0,
                "endValue": len(found) * period_s,
                "samples": [stacks["stacks"][stack] for stack in found],
                "weights": [period_s] * len(found),
            }
            for thread, found in sorted(of_thread.items())
        ],
    }
