"""What does a run remember of the machine, and does it say so when something is not there?"""

import os
import socket
import subprocess
import sys

import pytest

from perfkit import __version__
from perfkit.measuring.collectors.environment import fingerprint, is_gil_enabled, read_environment
from perfkit.quota import count_usable_cores

PLANTED = {
    "etc/machine-id": "3d1219c7c4c5404aaa1f6d2a48adfda4\n",
    "proc/cpuinfo": "processor : 0\nmodel name\t: Some CPU 9000\nflags\t\t: fpu sse hypervisor\n",
    "proc/meminfo": "MemTotal:       24683652 kB\nMemFree: 1 kB\n",
    "proc/loadavg": "1.25 0.65 0.40 1/99 7\n",
    "proc/self/cgroup": "0::/docker/abc\n",
    "proc/sys/kernel/yama/ptrace_scope": "1\n",
    "sys/fs/cgroup/cpu.max": "50000 100000\n",
    "sys/fs/cgroup/memory.max": "1048576\n",
    "sys/class/dmi/id/sys_vendor": "QEMU\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
}


def test_everything_that_the_machine_tells_is_read(plant):
    found = read_environment(plant(PLANTED))
    assert found.machine is not None
    assert (found.cpu_model, found.governor, found.virtualisation) == ("Some CPU 9000", "performance", "QEMU")
    assert (found.memory_bytes, found.memory_limit_bytes) == (24683652 * 1024, 1 << 20)
    assert (found.quota_cores, found.usable_cores, found.load_average) == (0.5, 1, 1.25)
    assert (found.container, found.ptrace_scope) == ("docker", 1)


def test_what_the_machine_does_not_tell_is_null_and_never_zero(tmp_path):
    found = read_environment(tmp_path)
    absent = ["machine", "cpu_model", "governor", "memory_bytes", "memory_limit_bytes", "quota_cores", "load_average"]
    absent += ["virtualisation", "container", "ptrace_scope"]
    assert [getattr(found, name) for name in absent] == [None] * len(absent)
    assert found.usable_cores == len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("affinity", "quota", "usable"), [(8, None, 8), (8, 2.5, 2), (2, 16.0, 2), (4, 0.5, 1), (1, None, 1)]
)
def test_usable_cores_are_whole_and_at_least_one(affinity, quota, usable):
    assert count_usable_cores(affinity, quota) == usable


def test_a_machine_is_known_by_a_hash_and_not_by_its_id(plant):
    root = plant(PLANTED)
    identity = PLANTED["etc/machine-id"].strip()
    found = read_environment(root)
    assert found == read_environment(root)
    assert identity not in repr(found)
    plant({"etc/machine-id": identity.replace("3", "4")})
    assert read_environment(root).machine != found.machine


def test_the_host_name_is_not_stored():
    assert socket.gethostname() not in fingerprint().values()


def test_package_versions_are_read_without_importing_them():
    assert fingerprint()["packages"]["perfkit"] == __version__
    code = "import sys; from perfkit.measuring.collectors.environment import fingerprint; fingerprint(); "
    code += "print(sorted({'torch', 'pandas', 'numpy', 'scipy'} & set(sys.modules)))"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.check_output([sys.executable, "-c", code], env=environment) == b"[]\n"


def test_this_interpreter_tells_whether_it_has_a_gil(monkeypatch):
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    assert is_gil_enabled() is False
    monkeypatch.delattr(sys, "_is_gil_enabled")
    assert is_gil_enabled() is True
