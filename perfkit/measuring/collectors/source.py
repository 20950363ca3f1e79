"""Which state of the code is measured? Its git commit, and whether it was changed since.

Only asked, never changed: git runs without hooks, watchers and locks. A folder outside any repository,
one that its repository ignores (an installed package) and a machine without git all give nothing.
"""

from __future__ import annotations

import os
import subprocess
from importlib.machinery import PathFinder
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

_TIMEOUT_S = 5.0  # a repository that takes longer is not waited for: the run counts, its commit is not known
_MODELS = "perfkit.models"  # the group in which packages offer models by a short name
_QUIET = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "--no-optional-locks")


def folder_of_model(model: str) -> Path | None:
    """The folder of the package that a model's name leads to, without importing it; None when there is none."""
    head = model.partition(":")[0]
    module = next((entry.module for entry in entry_points(group=_MODELS) if entry.name == head), head)
    package = module.partition(".")[0]
    if not package.isidentifier():
        return None
    found = PathFinder.find_spec(package)
    where = None if found is None else found.origin or next(iter(found.submodule_search_locations or ()), None)
    return Path(where).parent if where and Path(where).exists() else None


def folder_of_process(pid: int) -> Path | None:
    """The working folder of a process; None when it is gone or another user's."""
    try:
        return Path(os.readlink(f"/proc/{pid}/cwd"))
    except OSError:
        return None


def read_source(folder: Path | None) -> dict[str, Any]:
    """`commit`, `dirty` (a file that git keeps differs from it) and `branch` of a folder's repository, else nothing.

    `repository` is the name of its top folder: where it lies on the machine is nobody's business.
    """
    if folder is None or not folder.is_dir() or _git(folder, "check-ignore", "--quiet", ".") is not None:
        return {}
    commit, top = _git(folder, "rev-parse", "HEAD"), _git(folder, "rev-parse", "--show-toplevel")
    if not commit or not top:
        return {}
    changes = _git(folder, "status", "--porcelain", "--untracked-files=no")
    branch = _git(folder, "symbolic-ref", "--quiet", "--short", "HEAD")
    dirty = None if changes is None else bool(changes)
    return {"commit": commit, "dirty": dirty, "branch": branch or None, "repository": Path(top).name}


def _git(folder: Path, *words: str) -> str | None:
    """What git answers; None when it says no, takes too long, or is not there."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | {"LC_ALL": "C"}
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *_QUIET, *words],
            env=plain,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
