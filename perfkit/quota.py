"""How many cores may this process keep busy at once? Its affinity says which, its control groups how much of them.

Both layouts of control groups: version 2 (one tree) and version 1 (a tree per controller). A limit of
any ancestor binds, so every folder from the process's own group up to the mount is looked at. Inside a
container the path in /proc may not exist below the mount; the mount itself is then the group.
"""

from __future__ import annotations

from pathlib import Path


def count_usable_cores(affinity_cores: int, quota_cores: float | None) -> int:
    """Whole cores that threads of this process can be on at once: affinity and quota, and at least one."""
    return max(1, affinity_cores if quota_cores is None else min(affinity_cores, int(quota_cores)))


def find_groups(root: Path, pid: int | str = "self") -> list[Path]:
    """Folders of the groups of a process, innermost first, that exist below `root`/sys/fs/cgroup."""
    text = _text(root / "proc" / str(pid) / "cgroup") or ""
    mount = root / "sys/fs/cgroup"
    folders: list[Path] = []
    for line in text.splitlines():
        number, controllers, path = line.split(":", 2)
        names = [mount, mount / "unified"] if number == "0" else _mounts(mount, controllers)
        for base in names:
            folders += [folder for folder in _upwards(base, path) if folder not in folders and folder.is_dir()]
    return folders


def read_quota_cores(groups: list[Path]) -> float | None:
    """The tightest CPU quota in cores, or None when no group sets one."""
    quotas = [quota for quota in (_quota(group) for group in groups) if quota is not None]
    return min(quotas, default=None)


def _mounts(mount: Path, controllers: str) -> list[Path]:
    wanted = [name for name in controllers.split(",") if name in ("cpu", "memory")]
    return [mount / controllers, *(mount / name for name in wanted)] if wanted else []


def _upwards(base: Path, path: str) -> list[Path]:
    parts = [part for part in path.split("/") if part]
    return [base.joinpath(*parts[:depth]) for depth in range(len(parts), -1, -1)]


def _quota(group: Path) -> float | None:
    joined = _text(group / "cpu.max")
    quota, period = _text(group / "cpu.cfs_quota_us"), _text(group / "cpu.cfs_period_us")
    if joined is not None:
        quota, _, period = joined.partition(" ")
    if not quota or not period or not quota.strip().isdigit() or not period.strip().isdigit():
        return None
    return int(quota) / int(period)


def _text(path: Path) -> str | None:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:  # absent, gone or forbidden
        return None
