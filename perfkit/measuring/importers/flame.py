"""What does a foreign profile look like as data for the flame graph?

The same arrays as perfkit's own recordings (analysis/flame.py), with a unit in place of a rate: a file of
stacks does not say how often they were taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perfkit.measuring.analysis.flame import SCHEMA
from perfkit.measuring.importers.imported import Profile

_US_PER_S = 1e6


def foreign_flame(profiles: Sequence[Profile], title: str) -> dict[str, Any] | None:
    """One recording a profile that has its paths; None when none has. Seconds become microseconds."""
    names: dict[str, int] = {}
    recordings = [_recording(profile, names) for profile in profiles if profile.tree]
    if not recordings:
        return None
    return {"schema": SCHEMA, "title": title, "simulated": False, "recordings": recordings, "names": list(names)}


def _recording(profile: Profile, names: dict[str, int]) -> dict[str, Any]:
    tree = profile.tree
    assert tree is not None
    is_time = profile.unit == "s"
    known = [names.setdefault(name, len(names)) for name in tree.names]
    return {
        "mode": profile.name,
        "unit": "µs" if is_time else profile.unit,
        "sample_count": profile.samples,
        "threads": list(tree.threads),
        "parent": list(tree.parent),
        "name": [known[name] for name in tree.name],
        "self": [own * _US_PER_S if is_time else own for own in tree.own],
        "thread": list(tree.thread),
    }
