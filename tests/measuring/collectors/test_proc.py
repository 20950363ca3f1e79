"""Are the files of /proc read right, whatever a process is called?"""

from perfkit.measuring.collectors import proc
from perfkit.measuring.collectors.proc import CoreTimes, DiskTraffic, Schedule, Stat, Switches, Throttling

TICK_NS = 10_000_000


def test_schedstat_holds_time_on_a_cpu_time_in_the_run_queue_and_turns():
    assert proc.parse_schedstat("994950676 3106186 126\n") == Schedule(
        on_cpu_ns=994950676, runqueue_ns=3106186, slices=126
    )
    assert proc.parse_schedstat("") is None


def test_stat_is_read_behind_the_last_bracket_of_a_name_with_spaces_and_brackets():
    text = "77 (a) S (b c)) R 1 77 77 0 -1 4194304 3751 0 6 0 153 21 0 0 20 0 4 0 68418 254525440 5728"
    assert proc.parse_stat(text) == Stat(
        state="R",
        minor_faults=3751,
        major_faults=6,
        user_ns=153 * TICK_NS,
        system_ns=21 * TICK_NS,
        ended_ns=0,
        threads=4,
        started_ticks=68418,
    )
    assert proc.parse_stat("77 (cut") is None


def test_switches_are_absent_when_one_of_them_is():
    text = "Name:\tpython\nvoluntary_ctxt_switches:\t13\nnonvoluntary_ctxt_switches:\t2\n"
    assert proc.parse_switches(text) == Switches(voluntary=13, involuntary=2)
    assert proc.parse_switches("voluntary_ctxt_switches:\t13\n") is None


def test_resident_memory_is_the_second_number_of_statm_in_pages():
    assert proc.parse_resident("62140 5770 2251 1 0 9965 0\n") == 5770 * proc.PAGE_BYTES
    assert proc.parse_resident("") is None


def test_io_counts_are_read_by_name():
    assert proc.parse_named_counts("rchar: 32\nread_bytes: 94208\nState: S\n") == {"rchar": 32, "read_bytes": 94208}


def test_busy_time_of_a_core_leaves_out_idle_iowait_and_guest_and_counts_steal_apart():
    text = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 100 20 30 4000 500 6 7 8 90 91\nintr 5\n"
    assert proc.parse_cores(text) == {0: CoreTimes(busy_ns=163 * TICK_NS, steal_ns=8 * TICK_NS)}


def test_softirqs_are_summed_over_cores():
    text = "          CPU0       CPU1\n TIMER:     6749      10521\nNET_RX:     4755       9731\n"
    assert proc.parse_softirqs(text) == {"timer": 17270, "net_rx": 14486}


def test_pressure_totals_come_in_nanoseconds():
    text = "some avg10=3.34 avg60=3.36 avg300=0.99 total=5372781\nfull avg10=2.73 avg60=2.76 avg300=0.81 total=12\n"
    assert proc.parse_pressure(text) == {"some": 5_372_781_000, "full": 12_000}
    assert proc.parse_pressure("") == {}


def test_throttling_is_read_from_both_versions_of_cpu_stat():
    first = "nr_periods 9\nnr_throttled 3\nthrottled_time 1234567\n"
    second = "usage_usec 5\nnr_periods 9\nnr_throttled 3\nthrottled_usec 1234\n"
    assert proc.parse_throttling(first) == Throttling(periods=3, throttled_ns=1_234_567)
    assert proc.parse_throttling(second) == Throttling(periods=3, throttled_ns=1_234_000)


def test_a_group_without_a_quota_controller_has_no_throttling():
    assert proc.parse_throttling("usage_usec 5\nuser_usec 3\nsystem_usec 2\n") is None


def test_disk_traffic_counts_named_devices_once_in_sectors_of_512_bytes():
    text = (
        "   7 0 loop0 1 0 99 0 1 0 99 0 0 0 0\n"
        " 254 0 vda 81383 29028 4327850 12043 26875 90849 7494088 24269 0 10284 36882\n"
        " 254 1 vda1 81383 29028 4327850 12043 26875 90849 7494088 24269 0 10284 36882\n"
    )
    assert proc.parse_diskstats(text, frozenset({"vda"})) == DiskTraffic(
        read_bytes=4327850 * 512, written_bytes=7494088 * 512
    )
    assert proc.parse_diskstats(text, frozenset({"sda"})) is None


def test_a_file_that_is_not_there_is_absent(tmp_path):
    assert proc.read_text(tmp_path / "schedstat") is None
    assert proc.list_threads(1, tmp_path) == []
