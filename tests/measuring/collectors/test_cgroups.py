"""Which groups and files tell a process's limits and its throttling, in either version of cgroups?"""

import pytest

from perfkit.measuring.collectors.cgroups import read_memory_limit, read_throttling
from perfkit.measuring.collectors.proc import Throttling
from perfkit.quota import find_groups, read_quota_cores


def test_the_tightest_quota_of_any_ancestor_binds_in_version_2(plant):
    root = plant(
        {
            "proc/self/cgroup": "0::/pod/inner\n",
            "sys/fs/cgroup/pod/inner/cpu.max": "max 100000\n",
            "sys/fs/cgroup/pod/inner/memory.max": "max\n",
            "sys/fs/cgroup/pod/cpu.max": "150000 100000\n",
            "sys/fs/cgroup/pod/memory.max": "1073741824\n",
        }
    )
    groups = find_groups(root)
    assert [str(group.relative_to(root / "sys/fs/cgroup")) for group in groups] == ["pod/inner", "pod", "."]
    assert read_quota_cores(groups) == 1.5
    assert read_memory_limit(groups) == 1 << 30


def test_quota_and_limit_are_read_from_version_1(plant):
    root = plant(
        {
            "proc/self/cgroup": "5:cpu,cpuacct:/job\n4:memory:/job\n3:freezer:/job\n",
            "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us": "50000\n",
            "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/memory/job/memory.limit_in_bytes": "9223372036854771712\n",
        }
    )
    groups = find_groups(root)
    assert read_quota_cores(groups) == 0.5
    assert read_memory_limit(groups) is None


def test_a_path_that_the_container_cannot_see_leaves_the_mount_itself(plant):
    root = plant({"proc/7/cgroup": "0::/kubepods/pod1/abc\n", "sys/fs/cgroup/cpu.max": "200000 100000\n"})
    assert read_quota_cores(find_groups(root, 7)) == 2.0


@pytest.mark.parametrize("quota", ["-1\n", "max\n", ""])
def test_no_limit_is_no_quota(plant, quota):
    root = plant(
        {
            "proc/self/cgroup": "1:cpu:/\n",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": quota,
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
        }
    )
    assert read_quota_cores(find_groups(root)) is None


def test_throttling_comes_from_the_innermost_group_that_counts_it(plant):
    root = plant(
        {
            "proc/self/cgroup": "0::/a/b\n",
            "sys/fs/cgroup/a/b/cpu.stat": "usage_usec 1\n",
            "sys/fs/cgroup/a/cpu.stat": "nr_throttled 4\nthrottled_usec 20\n",
        }
    )
    assert read_throttling(find_groups(root)) == Throttling(periods=4, throttled_ns=20_000)


def test_a_host_without_control_groups_has_none(tmp_path):
    assert find_groups(tmp_path) == []
    assert read_quota_cores([]) is None
    assert read_throttling([]) is None
