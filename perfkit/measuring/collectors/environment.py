"""On what does a run happen? A fingerprint that says whether two runs may be compared.

The machine is named by a hash of its id, never by its host name. What cannot be read is null.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import sys
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from perfkit import __version__
from perfkit.measuring.collectors.cgroups import read_memory_limit
from perfkit.measuring.collectors.proc import read_text
from perfkit.quota import count_usable_cores, find_groups, read_quota_cores

PACKAGES = (
    "torch",
    "numpy",
    "tokenizers",
    "safetensors",
    "pillow",
    "uvloop",
    "httptools",
    "orjson",
    "pandas",
    "pyarrow",
    "scipy",
    "plotly",
    "anywidget",
    "ipywidgets",
    "jupyterlab",
    "psutil",
    "py-spy",
    "nvidia-ml-py",
)
_CONTAINER_WORDS = ("docker", "kubepods", "containerd", "libpod", "lxc")
_HASH_LENGTH = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Everything about host, kernel and interpreter that may move a number."""

    machine: str | None
    cpu_model: str | None
    logical_cores: int | None
    affinity_cores: int
    quota_cores: float | None
    usable_cores: int
    governor: str | None
    memory_bytes: int | None
    memory_limit_bytes: int | None
    load_average: float | None
    kernel: str
    glibc: str | None
    virtualisation: str | None
    container: str | None
    ptrace_scope: int | None
    python: str
    gil_enabled: bool
    switch_interval_s: float
    packages: dict[str, str]


def read_environment(root: Path = Path("/")) -> Environment:
    """The fingerprint as of now. Call it after the imports: an extension may switch the GIL back on."""
    groups = find_groups(root)
    affinity_cores, quota_cores = len(os.sched_getaffinity(0)), read_quota_cores(groups)
    return Environment(
        machine=_machine(root),
        cpu_model=_cpu_model(root),
        logical_cores=os.cpu_count(),
        affinity_cores=affinity_cores,
        quota_cores=quota_cores,
        usable_cores=count_usable_cores(affinity_cores, quota_cores),
        governor=_line(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        memory_bytes=_memory_bytes(root),
        memory_limit_bytes=read_memory_limit(groups),
        load_average=_load_average(root),
        kernel=platform.release(),
        glibc=_glibc(),
        virtualisation=_virtualisation(root),
        container=_container(root),
        ptrace_scope=_ptrace_scope(root),
        python=platform.python_version(),
        gil_enabled=is_gil_enabled(),
        switch_interval_s=sys.getswitchinterval(),
        packages=read_packages(),
    )


def fingerprint() -> dict[str, Any]:
    """The environment as a run's manifest carries it."""
    return asdict(read_environment())


def is_gil_enabled() -> bool:
    """Whether this interpreter has a GIL now; before Python 3.13 there always is one."""
    ask = getattr(sys, "_is_gil_enabled", None)
    return True if ask is None else bool(ask())


def read_packages() -> dict[str, str]:
    """Versions of the packages that matter, without importing any; those not installed are left out."""
    versions = {"perfkit": __version__}  # also when it runs from a checkout
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def _line(path: Path) -> str | None:
    text = (read_text(path) or "").strip()
    return text or None


def _machine(root: Path) -> str | None:
    identity = _line(root / "etc/machine-id")
    if identity is None:
        return None
    return hashlib.sha256(f"perfkit {identity}".encode()).hexdigest()[:_HASH_LENGTH]


def _cpu_model(root: Path) -> str | None:
    found = re.search(r"^model name\s*:\s*(.+)$", read_text(root / "proc/cpuinfo") or "", re.MULTILINE)
    return found[1].strip() if found else None


def _memory_bytes(root: Path) -> int | None:
    found = re.search(r"^MemTotal:\s*(\d+) kB", read_text(root / "proc/meminfo") or "", re.MULTILINE)
    return int(found[1]) * 1024 if found else None


def _load_average(root: Path) -> float | None:
    text = _line(root / "proc/loadavg")
    return float(text.split()[0]) if text else None


def _glibc() -> str | None:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION")
    except (OSError, ValueError):  # another C library
        return None


def _virtualisation(root: Path) -> str | None:
    """What the firmware calls itself, else `yes` where the CPU says that a hypervisor is below it."""
    if not re.search(r"^flags\s*:.*\bhypervisor\b", read_text(root / "proc/cpuinfo") or "", re.MULTILINE):
        return None
    return _line(root / "sys/hypervisor/type") or _line(root / "sys/class/dmi/id/sys_vendor") or "yes"


def _container(root: Path) -> str | None:
    for mark, kind in ((".dockerenv", "docker"), ("run/.containerenv", "podman")):
        if (root / mark).exists():
            return kind
    groups = read_text(root / "proc/self/cgroup") or ""
    return next((word for word in _CONTAINER_WORDS if word in groups), None)


def _ptrace_scope(root: Path) -> int | None:
    text = _line(root / "proc/sys/kernel/yama/ptrace_scope")
    return int(text) if text else None
