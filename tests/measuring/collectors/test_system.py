"""What is read of the host, its cores and the process, and what when a file is missing?"""

from perfkit.measuring.collectors.proc import PAGE_BYTES
from perfkit.measuring.collectors.series import Reading
from perfkit.measuring.collectors.system import find_disks, read_children, read_cores, read_host, read_process

STAT = "5 (python) S 1 5 5 0 -1 0 3751 0 6 0 153 21 0 0 20 0 4 0 68418 254525440 5728"


def test_a_process_is_read_from_stat_statm_io_and_its_open_files(plant):
    root = plant(
        {
            "proc/5/stat": STAT,
            "proc/5/statm": "62140 5770 2251 1 0 9965 0\n",
            "proc/5/io": "rchar: 9\nread_bytes: 4096\nwrite_bytes: 8192\n",
            "proc/5/fd/0": "",
            "proc/5/fd/1": "",
        }
    )
    assert list(read_process(root, 5)) == [
        Reading("process", "user_cpu", "s", 1.53),
        Reading("process", "system_cpu", "s", 0.21),
        Reading("process", "minor_faults", "count", 3751.0),
        Reading("process", "major_faults", "count", 6.0),
        Reading("process", "threads", "count", 4.0),
        Reading("process", "rss", "bytes", 5770.0 * PAGE_BYTES),
        Reading("process", "read", "bytes", 4096.0),
        Reading("process", "written", "bytes", 8192.0),
        Reading("process", "open_files", "count", 2.0),
    ]


def test_the_children_of_all_threads_count_with_theirs_and_with_those_that_have_ended(plant):
    def stat(own, ended):
        return f"5 (python) S 1 5 5 0 -1 0 3751 0 6 0 {own} 0 {ended} 0 20 0 4 0 68418 254525440 5728"

    root = plant(
        {
            "proc/5/stat": stat(own=700, ended=100),
            "proc/5/task/5/children": "",
            "proc/5/task/6/children": "7 8 9 ",
            "proc/7/stat": stat(own=200, ended=5),
            "proc/7/task/7/children": "",
            "proc/8/stat": stat(own=30, ended=0),
            "proc/8/task/8/children": "10 ",
            "proc/10/stat": stat(own=1, ended=0),
            "proc/10/task/10/children": "",
        }
    )
    assert list(read_children(root, 5)) == [Reading("children", "cpu", "s", 3.36)]
    assert list(read_children(root, 10)) == [Reading("children", "cpu", "s", 0.0)]
    assert list(read_children(plant({"proc/11/stat": stat(1, 1), "proc/11/task/11/comm": "x"}), 11)) == []


def test_a_process_that_has_gone_gives_no_rows(plant):
    assert list(read_process(plant({"proc/stat": ""}), 5)) == []


def test_each_core_has_busy_and_stolen_time(plant):
    root = plant({"proc/stat": "cpu  1 1 1 1 1 1 1 1\ncpu1 100 0 50 900 0 0 0 25 0 0\n"})
    assert list(read_cores(root)) == [
        Reading("core:1", "busy", "s", 1.5),
        Reading("core:1", "steal", "s", 0.25),
    ]


def test_the_host_is_read_from_softirqs_pressure_disks_and_the_targets_group(plant):
    root = plant(
        {
            "proc/softirqs": "        CPU0 CPU1\nNET_RX:   10   20\n",
            "proc/pressure/cpu": "some avg10=0 avg60=0 avg300=0 total=2500000\n",
            "proc/diskstats": " 254 0 vda 1 0 8 0 1 0 16 0 0 0 0\n 253 0 zram0 1 0 8 0 1 0 16 0 0 0 0\n",
            "sys/block/vda/size": "1",
            "sys/block/zram0/size": "1",
            "group/cpu.stat": "nr_throttled 3\nthrottled_usec 1500000\n",
        }
    )
    assert list(read_host(root, [root / "group"])) == [
        Reading("host", "softirq_net_rx", "count", 30.0),
        Reading("host", "pressure_cpu_some", "s", 2.5),
        Reading("host", "disk_read", "bytes", 4096.0),
        Reading("host", "disk_written", "bytes", 8192.0),
        Reading("host", "throttled", "s", 1.5),
        Reading("host", "throttled_periods", "count", 3.0),
    ]


def test_a_kernel_without_pressure_or_quota_gives_no_rows(plant):
    assert list(read_host(plant({"proc/stat": ""}), [])) == []


def test_loops_memory_disks_and_stacked_devices_are_no_disks(plant):
    devices = ["loop0", "ram1", "zram0", "dm-0", "md127", "sda", "nvme0n1", "vda"]
    root = plant({f"sys/block/{device}/size": "1" for device in devices})
    assert find_disks(root) == {"sda", "nvme0n1", "vda"}
