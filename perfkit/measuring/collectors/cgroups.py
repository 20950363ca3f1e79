"""Which control groups hold a process, and how much CPU and memory do they allow it?

Both layouts: version 2 (one tree) and version 1 (a tree per controller). A limit of any ancestor
binds, so every folder from the process's own group up to the mount is looked at. Inside a
container the path in /proc may not exist below the mount; the mount itself is then the group.
"""

from __future__ import annotations

from pathlib import Path

from perfkit.measuring.collectors.proc import Throttling, parse_throttling, read_text

_UNLIMITED_BYTES = 1 << 60  # version 1 writes a huge page-rounded number for "no limit"


def find_groups(root: Path, pid: int | str = "self") -> list[Path]:
    """Folders of the groups of a process, innermost first, that exist below `root`/sys/fs/cgroup."""
    text = read_text(root / "proc" / str(pid) / "cgroup") or ""
    mount = root / "sys/fs/cgroup"
    folders: list[Path] = []
    for line in text.splitlines():
        number, controllers, path = line.split(":", 2)
        names = [mount, mount / "unified"] if number == "0" else _mounts(mount, controllers)
        for base in names:
            folders += [folder for folder in _upwards(base, path) if folder not in folders and folder.is_dir()]
    return folders


def _mounts(mount: Path, controllers: str) -> list[Path]:
    wanted = [name for name in controllers.split(",") if name in ("cpu", "memory")]
    return [mount / controllers, *(mount / name for name in wanted)] if wanted else []


def _upwards(base: Path, path: str) -> list[Path]:
    parts = [part for part in path.split("/") if part]
    return [base.joinpath(*parts[:depth]) for depth in range(len(parts), -1, -1)]


def read_quota_cores(groups: list[Path]) -> float | None:
    """The tightest CPU quota in cores, or None when no group sets one."""
    quotas = [quota for quota in (_quota(group) for group in groups) if quota is not None]
    return min(quotas, default=None)


def _quota(group: Path) -> float | None:
    joined = read_text(group / "cpu.max")
    quota, period = read_text(group / "cpu.cfs_quota_us"), read_text(group / "cpu.cfs_period_us")
    if joined is not None:
        quota, _, period = joined.partition(" ")
    if not quota or not period or not quota.strip().isdigit() or not period.strip().isdigit():
        return None
    return int(quota) / int(period)


def read_memory_limit(groups: list[Path]) -> int | None:
    """The tightest memory limit in bytes, or None when no group sets one."""
    texts = [read_text(group / name) for group in groups for name in ("memory.max", "memory.limit_in_bytes")]
    limits = [int(text) for text in texts if text is not None and text.strip().isdigit()]
    return min((limit for limit in limits if limit < _UNLIMITED_BYTES), default=None)


def read_throttling(groups: list[Path]) -> Throttling | None:
    """How often the quota held the process's innermost counting group back."""
    found = (parse_throttling(read_text(group / "cpu.stat") or "") for group in groups)
    return next((throttling for throttling in found if throttling is not None), None)
