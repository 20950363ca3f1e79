"""Is every field of a GPU told or missed with its reason, and never a zero or an exception?"""

import pytest

from perfkit.clock import NS_PER_S, epoch_ns
from perfkit.measuring.collectors.nvml.library import list_gpus
from perfkit.measuring.collectors.nvml.watch import GpuWatch

GIB = float(1 << 30)
UUID = "GPU-00000000-0000-0000-0000-000000000007"
BY_FIELD = {
    "utilisation": {"gpu_util": 0.9, "memory_util": 0.4},
    "memory": {"memory_used": 40 * GIB, "memory_total": 141 * GIB, "memory_reserved": GIB},
    "sm_clock": {"sm_clock": 1980e6},
    "memory_clock": {"memory_clock": 3201e6},
    "throttle": {"throttle": 4.0},
    "power": {"power": 650.0},
    "power_instant": {"power_instant": 700.0},
    "temperature": {"temperature": 61.0},
    "pcie": {"pcie_tx": 197e6, "pcie_rx": 198e6},
    "processes": {"processes": 2.0},
    "history": {"gpu_util_history": 0.81, "memory_util_history": 0.31},
    "gpm": {
        "gpm_graphics": 0.01,
        "sm_active": 0.02,
        "sm_occupancy": 0.03,
        "tensor_active": 0.05,
        "dram_active": 0.10,
        "fp16_active": 0.13,
        "gpm_pcie_tx": 20 * 1024.0**2,
        "gpm_pcie_rx": 21 * 1024.0**2,
    },
}
OF_PROCESSES = {"pid:4000": {"memory_used": 20 * GIB, "sm_util": 0.7, "memory_util": 0.2}}
SERIES_OF = {name: set(series) for name, series in BY_FIELD.items()} | {"energy": {"energy"}}


def watch(nvml, clock):
    return GpuWatch(nvml, list_gpus(nvml)[0], clock, epoch_ns)


def look_twice(gpu, clock):
    """Two looks at all fields, 0.2 s apart: GPM needs a difference."""
    rows = [row for answer in gpu.read(is_slow_turn=True) for row in answer.readings]
    clock.advance(NS_PER_S // 5)
    return rows + [row for answer in gpu.read(is_slow_turn=True) for row in answer.readings]


def last_values(rows, source=f"gpu:{UUID}"):
    return {row.name: row.value for row in rows if row.source == source and not row.name.endswith("_call")}


def test_every_field_is_told_in_base_units(nvml, clock):
    gpu = watch(nvml, clock)
    rows = look_twice(gpu, clock)
    values = last_values(rows)
    assert values.pop("energy") > 0
    assert values == pytest.approx({name: value for series in BY_FIELD.values() for name, value in series.items()})
    parts = {row.source.split(":", 2)[2] for row in rows if row.source.count(":") > 1}
    assert {part: pytest.approx(last_values(rows, f"gpu:{UUID}:{part}")) for part in parts} == OF_PROCESSES
    facts = gpu.facts()
    assert (facts["missing"], facts["failed"], facts["lost"], facts["name"]) == ({}, {}, None, "Stub H200")
    gpu.close()


def test_the_dear_fields_are_left_out_of_the_quick_turns(nvml, clock):
    gpu = watch(nvml, clock)
    list(gpu.read(is_slow_turn=True))
    clock.advance(NS_PER_S // 5)
    quick = {row.name for answer in gpu.read(is_slow_turn=False) for row in answer.readings}
    assert quick >= {"gpu_util", "memory_used", "sm_clock", "power", "energy", "sm_active"}
    assert quick.isdisjoint({"pcie_tx", "processes", "temperature", "gpu_util_history"})


def test_a_row_has_the_instant_before_its_call_and_how_long_the_call_took(nvml, clock):
    answers = list(watch(nvml, clock).read(is_slow_turn=False))
    assert {answer.time_ns for answer in answers} == {clock.now_ns()}
    assert {row.name for answer in answers for row in answer.readings} >= {"power_call", "memory_call", "gpm_call"}


def test_two_samples_of_the_monitors_are_never_closer_than_a_tenth_of_a_second(nvml, clock):
    gpu = watch(nvml, clock)
    seen = []
    for _ in range(6):  # 60 ms apart: two steps are too short for three samples, but not for two
        seen.append("sm_active" in {row.name for answer in gpu.read(is_slow_turn=False) for row in answer.readings})
        clock.advance(60_000_000)
    assert seen == [False, False, True, False, True, False]


# What is planted, which fields it takes away, and a word of the reason.
FAILURES = [
    ("nvmlDeviceGetUtilizationRates=3", {"utilisation"}, "NVML 3, Not Supported"),
    ("nvmlDeviceGetUtilizationRates=999", {"utilisation"}, "sandbox or microVM"),
    ("nvmlDeviceGetMemoryInfo_v2=3,nvmlDeviceGetMemoryInfo=3", {"memory"}, "Not Supported"),
    ("nvmlDeviceGetMemoryInfo_v2=17,nvmlDeviceGetMemoryInfo=17", {"memory"}, "operating system"),
    ("nvmlDeviceGetClockInfo=3", {"sm_clock", "memory_clock"}, "Not Supported"),
    ("nvmlDeviceGetClockInfo=4", {"sm_clock", "memory_clock"}, "privilege"),
    ("nvmlDeviceGetCurrentClocksEventReasons=3,nvmlDeviceGetCurrentClocksThrottleReasons=3", {"throttle"}, "Not Supp"),
    ("nvmlDeviceGetPowerUsage=3", {"power"}, "this GPU or its driver does not offer it"),
    ("nvmlDeviceGetPowerUsage=4", {"power"}, "Insufficient Permissions"),
    ("nvmlDeviceGetPowerUsage=21", {"power"}, "no data yet"),
    ("nvmlDeviceGetFieldValues=13", {"power_instant"}, "older than this function"),
    ("field186=3", {"power_instant"}, "Not Supported"),
    ("field186=2", {"power_instant"}, "a newer driver may"),
    ("nvmlDeviceGetTotalEnergyConsumption=3", {"energy"}, "Not Supported"),
    ("nvmlDeviceGetTotalEnergyConsumption=10", {"energy"}, "did not answer in time"),
    ("nvmlDeviceGetTemperature=1", {"temperature"}, "not initialised"),
    ("field197=3,nvmlDeviceGetPcieThroughput=3", {"pcie"}, "Not Supported"),
    ("field198=999,nvmlDeviceGetPcieThroughput=999", {"pcie"}, "no cause was given"),
    (
        "nvmlDeviceGetComputeRunningProcesses_v3=4,nvmlDeviceGetComputeRunningProcesses_v2=4",
        {"processes"},
        "Insufficient Permissions",
    ),
    ("nvmlDeviceGetComputeRunningProcesses_v3=999", {"processes"}, "no cause was given"),
    ("nvmlDeviceGetSamples=3", {"history"}, "Not Supported"),
    ("nvmlDeviceGetSamples=4", {"history"}, "privilege"),
    ("nvmlDeviceGetProcessUtilization=3", {"process_util"}, "Not Supported"),
    ("nvmlDeviceGetProcessUtilization=999", {"process_util"}, "no cause was given"),
    ("nvmlGpmSampleAlloc=13", {"gpm"}, "older than this function"),
    ("nvmlGpmSampleAlloc=20", {"gpm"}, "run out of memory"),
    ("nvmlGpmSampleGet=3", {"gpm"}, "Not Supported"),
    ("nvmlGpmSampleGet=999", {"gpm"}, "no cause was given"),
    ("nvmlGpmMetricsGet=25", {"gpm"}, "version of the question"),
    ("metric2=3", {"sm_active"}, "NVML 3"),
    ("nvmlDeviceGetPowerUsage=7777", {"power"}, "a cause that perfkit does not know (NVML 7777, an error of the stub)"),
]


@pytest.mark.parametrize(("failures", "lost", "reason"), FAILURES, ids=[one[0] for one in FAILURES])
def test_a_failure_takes_its_own_field_and_says_why(nvml, clock, plan, failures, lost, reason):
    plan(FAIL=failures)
    gpu = watch(nvml, clock)
    told = {name.removesuffix("_rate") for name in last_values(look_twice(gpu, clock))}
    missing = gpu.facts()["missing"]
    assert set(missing) == lost
    assert all(reason in why for why in missing.values()), missing
    gone = {series for field in lost for series in SERIES_OF.get(field, {field})}
    everything = {series for name in SERIES_OF for series in SERIES_OF[name]}
    assert told == everything - gone
    gpu.close()


# Values that the driver gives and that cannot be: they are missed, not recorded.
NONSENSE = [
    ({"GPU_UTIL": 250}, "utilisation", "250 per cent"),
    ({"MEMORY_TOTAL": 0}, "memory", "0 bytes of memory"),
    ({"POWER_MW": 0xFFFFFFFF}, "power", "not available"),
    ({"FIELD_TYPE": 99}, "power_instant", "type 99"),
    ({"GPM": "nan"}, "gpm", "nan"),
    ({"GPM": -1}, "gpm", "-1"),
]


@pytest.mark.parametrize(("words", "field", "reason"), NONSENSE, ids=[one[2] for one in NONSENSE])
def test_a_value_that_cannot_be_is_missed_and_not_recorded(nvml, clock, plan, words, field, reason):
    plan(**words)
    gpu = watch(nvml, clock)
    assert SERIES_OF[field].isdisjoint(last_values(look_twice(gpu, clock)))
    assert reason in gpu.facts()["missing"][field]


def test_an_old_driver_is_asked_in_the_old_ways(over, build_nvml, clock):
    old = ("nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetCurrentClocksEventReasons")
    newer = ("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetFieldValues")
    monitors = ("nvmlGpmSampleAlloc", "nvmlGpmSampleGet", "nvmlGpmMetricsGet", "nvmlGpmQueryDeviceSupport")
    gpu = watch(over(build_nvml(*old, *newer, *monitors)), clock)
    values = last_values(look_twice(gpu, clock))
    wanted = {"memory_used": 41 * GIB, "throttle": 32.0, "processes": 2.0, "pcie_tx_rate": 1.5e6, "pcie_rx_rate": 2.5e6}
    assert {name: values[name] for name in wanted} == wanted
    assert set(gpu.facts()["missing"]) == {"power_instant", "gpm"}
    assert all("older than this function" in why for why in gpu.facts()["missing"].values())


def test_on_mig_a_zero_utilisation_is_not_believed(nvml, clock, plan):
    plan(MIG=1, GPU_UTIL=0)
    gpu = watch(nvml, clock)
    told = last_values(look_twice(gpu, clock))
    assert {"gpu_util", "memory_util", "gpu_util_history"}.isdisjoint(told)
    missing = gpu.facts()["missing"]
    assert set(missing) == {"utilisation", "history", "process_util"}
    assert all(why.startswith("not available on MIG") for why in missing.values())


def test_a_gpu_that_is_lost_in_the_middle_keeps_its_rows_and_is_not_asked_again(nvml, clock, plan):
    plan(FAIL="nvmlDeviceGetClockInfo=15@5")  # the third look's first clock
    gpu = watch(nvml, clock)
    before = look_twice(gpu, clock)
    during = [row.name for answer in gpu.read(is_slow_turn=True) for row in answer.readings]
    after = list(gpu.read(is_slow_turn=True))
    assert "power" in last_values(before)
    assert (during, after) == (["gpu_util", "memory_util", "utilisation_call", *MEMORY_ROWS], [])
    facts = gpu.facts()
    assert facts["lost"].startswith("the GPU is lost: it fell off the bus or was reset")
    assert facts["missing"] == {}
    assert facts["failed"]["sm_clock"] == {"failures": 1, "readings": 2, "reason": facts["lost"]}


MEMORY_ROWS = ["memory_used", "memory_total", "memory_reserved", "memory_call"]


def test_a_gpu_that_is_lost_from_the_first_call_on_misses_everything_for_that_reason(nvml, clock, plan):
    plan(FAIL="nvmlDeviceGetUtilizationRates=15")
    gpu = watch(nvml, clock)
    assert look_twice(gpu, clock) == []
    missing = gpu.facts()["missing"]
    assert len(missing) == 14
    assert {why.partition(":")[0] for why in missing.values()} == {"the GPU is lost"}


def test_a_field_that_fails_for_once_is_asked_again_and_the_failure_is_counted(nvml, clock, plan):
    plan(FAIL="nvmlDeviceGetPowerUsage=10")
    gpu = watch(nvml, clock)
    list(gpu.read(is_slow_turn=False))
    plan(FAIL="")
    assert "power" in {row.name for answer in gpu.read(is_slow_turn=False) for row in answer.readings}
    assert gpu.facts()["missing"] == {name: "it was never asked" for name in SLOW}
    assert gpu.facts()["failed"]["power"]["failures"] == 1


SLOW = ("temperature", "pcie", "processes", "history", "process_util")


def test_an_empty_buffer_of_the_driver_is_no_failure(nvml, clock, plan):
    plan(SAMPLES=0, PROCESSES=0, FAIL="nvmlDeviceGetProcessUtilization=6")
    gpu = watch(nvml, clock)
    values = last_values(look_twice(gpu, clock))
    assert values["processes"] == 0.0
    assert "gpu_util_history" not in values
    assert gpu.facts()["missing"] == {}


@pytest.mark.parametrize("skew_us", [0, 86_400_000_000])
def test_the_drivers_own_stamps_are_placed_on_the_hosts_clock_unless_they_are_of_another(nvml, clock, plan, skew_us):
    plan(CLOCK_SKEW_US=skew_us)
    answers = [
        answer
        for answer in watch(nvml, clock).read(is_slow_turn=True)
        if any(row.name == "gpu_util_history" for row in answer.readings)
    ]
    times = sorted(answer.time_ns for answer in answers)
    if skew_us:
        assert times == [clock.now_ns()]  # both rows at the look's own instant
    else:
        assert len(times) == 2
        assert all(clock.now_ns() - NS_PER_S < time_ns <= clock.now_ns() for time_ns in times)
        assert times[1] - times[0] == pytest.approx(1_000_000, abs=900_000)  # two of the stub's samples, 1 ms apart
