"""Do logs of nvidia-smi become the series that our own collector records, absent where the driver told nothing?"""

import re

import pytest

from perfkit.errors import ConfigError
from perfkit.measuring.collectors.collector import SeriesRow
from perfkit.measuring.collectors.nvml import fields
from perfkit.measuring.importers import dmon, nvidia_smi

MIB = float(1 << 20)
NOON_NS = 1_732_363_409_950_000_000  # 2024-11-23 12:03:29.950 UTC
TWO_GPUS = """timestamp, index, name, utilization.gpu [%], memory.used [MiB], power.draw [W], clocks.sm [MHz]
2024/11/23 12:03:29.950, 0, NVIDIA H200, 92 %, 25073 MiB, 650.00 W, 1980 MHz
2024/11/23 12:03:29.951, 1, NVIDIA H200, 0 %, 15 MiB, [N/A], [Not Supported]
"""
DMON = """# gpu   pwr  gtemp  mtemp    sm   mem   enc   dec  mclk  pclk    fb rxpci txpci
# Idx     W      C      C     %     %     %     %   MHz   MHz    MB  MB/s  MB/s
    0   111     83      -    25     7     0     0  2619  1683 11651    41     8
    1     -     84      -     -     -     -     -  2619     -     -     -     -
# gpu   pwr  gtemp  mtemp    sm   mem   enc   dec  mclk  pclk    fb rxpci txpci
# Idx     W      C      C     %     %     %     %   MHz   MHz    MB  MB/s  MB/s
    0   112     83      -    30     8     0     0  2619  1700 11651    40     9
#   1   113     84      -    31     8     0     0  2619  1700 11651    40     9
    0   112     83
"""


def values(imported, source, name):
    return [row.value for row in imported.series if (row.source, row.name) == (source, name)]


def test_two_gpus_in_turn_are_two_sources_and_what_is_not_told_is_absent(reading):
    imported = reading(TWO_GPUS)
    assert (imported.format, imported.rows.kept, imported.rows.dropped) == ("nvidia-smi CSV", 2, {})
    assert [row for row in imported.series if row.source == "gpu:index:0"] == [
        SeriesRow(NOON_NS, "gpu:index:0", "gpu_util", "ratio", 0.92),
        SeriesRow(NOON_NS, "gpu:index:0", "memory_used", "bytes", 25073 * MIB),
        SeriesRow(NOON_NS, "gpu:index:0", "power", "W", 650.0),
        SeriesRow(NOON_NS, "gpu:index:0", "sm_clock", "Hz", 1980e6),
    ]
    assert values(imported, "gpu:index:1", "gpu_util") == [0.0]  # a zero that was told stays one
    assert values(imported, "gpu:index:1", "power") == []
    assert "power.draw: 1 cells absent, not told by the driver ([N/A])" in imported.notes
    assert "clocks.sm: 1 cells absent, not told by the driver ([Not Supported])" in imported.notes


def test_without_units_in_the_cells_those_of_the_heading_count(reading):
    plain = TWO_GPUS.replace(" %,", ",").replace(" MiB,", ",").replace(" W,", ",").replace(" MHz\n", "\n")
    assert reading(plain).series == reading(TWO_GPUS).series


def test_a_heading_that_a_loop_repeats_is_no_row(reading):
    head, *rows = TWO_GPUS.splitlines()
    repeated = "\n".join(line for row in rows for line in (head, row)) + "\n"
    assert reading(repeated).series == reading(TWO_GPUS).series


def test_a_gpu_is_known_by_its_uuid_before_its_index(reading):
    imported = reading("timestamp, index, uuid, power.draw [W]\n2024/11/23 12:03:29.950, 0, GPU-7, 22.89 W\n")
    assert {row.source for row in imported.series} == {"gpu:GPU-7"}


def test_a_log_without_utilisation_says_so_and_one_without_times_counts_its_rows(reading):
    imported = reading("index, power.draw [W]\n0, 22.89 W\n0, 22.73 W\n")
    assert [row.time_ns for row in imported.series] == [0, 1_000_000_000]
    assert any("no column of times" in note for note in imported.notes)
    assert any("whether the GPU was busy is not known" in note for note in imported.notes)


def test_a_log_of_somebodys_own_with_epoch_seconds_is_read_in_nvidia_smis_units(reading):
    imported = reading("timestamp,gpu_utilization,memory_used,memory_total\n1746556382.8348258,43, 1070, 15360\n")
    assert imported.series == (
        SeriesRow(1_746_556_382_834_826_000, "gpu:index:0", "gpu_util", "ratio", 0.43),
        SeriesRow(1_746_556_382_834_826_000, "gpu:index:0", "memory_used", "bytes", 1070 * MIB),
        SeriesRow(1_746_556_382_834_826_000, "gpu:index:0", "memory_total", "bytes", 15360 * MIB),
    )
    assert any("of somebody's own making" in note for note in imported.notes)


@pytest.mark.parametrize(
    "cell", ["[N/A]", "[Not Supported]", "[Unknown Error]", "[GPU is lost]", "N/A", "-", "", "150 %", "12 apples", "ok"]
)
def test_a_cell_without_a_value_is_absent_with_a_reason_and_never_zero(reading, cell):
    imported = reading(f"timestamp, utilization.gpu [%], power.draw [W]\n2024/11/23 12:03:29.950, {cell}, 20.00 W\n")
    assert [row.name for row in imported.series] == ["power"]
    assert any(note.startswith("utilization.gpu: 1 cells absent, ") for note in imported.notes)


def test_rows_that_cannot_be_placed_or_hold_nothing_are_dropped_and_counted(reading):
    head = "timestamp, utilization.gpu [%]\n"
    imported = reading(
        f"{head}2024/13/45 12:03:29.950, 5 %\n2024/11/23 12:03:29.950, [N/A]\n2024/11/23 12:03:30.950, 6 %\n"
    )
    assert imported.rows.dropped == {"time stamp that cannot be read": 1, "no value in any of its columns": 1}
    assert values(imported, "gpu:index:0", "gpu_util") == [0.06]


def test_a_jetson_that_tells_nothing_at_all_is_refused_with_what_was_seen(reading):
    nothing = "timestamp, utilization.gpu [%], memory.used [MiB]\n" + "2024/11/23 12:03:29.950, [N/A], [N/A]\n" * 3
    with pytest.raises(ConfigError, match=r"nvidia-smi CSV without a single usable row \(3 × no value in any"):
        reading(nothing)


def test_throttling_is_a_mask_under_its_old_and_its_new_name(reading):
    for name in ("clocks_throttle_reasons.active", "clocks_event_reasons.active"):
        imported = reading(f"timestamp, {name}\n2024/11/23 12:03:29.950, 0x0000000000000004\n")
        assert values(imported, "gpu:index:0", "throttle") == [4.0]


def test_dmon_rows_follow_the_headings_names_and_a_dash_is_absent(reading):
    imported = reading(DMON)
    assert (imported.format, imported.rows.kept) == ("nvidia-smi dmon", 4)
    assert imported.rows.dropped == {"another number of cells than the heading": 1}
    assert values(imported, "gpu:index:0", "gpu_util") == [0.25, 0.30]
    assert values(imported, "gpu:index:1", "power") == [113.0]
    assert values(imported, "gpu:index:0", "pcie_rx_rate") == [41e6, 40e6]
    assert [row.time_ns for row in imported.series if row.name == "memory_clock"] == [0, 0, 10**9, 10**9]
    assert "sm: 1 cells absent, not told by the driver (-)" in imported.notes
    assert "columns without a series of ours: mtemp, enc, dec" in imported.notes


@pytest.mark.parametrize(
    ("heads", "stamps", "seconds"),
    [
        (("#Time    ", "#HH:MM:SS"), ("23:59:59", "00:00:00"), 1),
        (("#Date Time ", "#YYYYMMDD HH:MM:SS"), ("20241123 12:03:29", "20241123 12:03:31"), 2),
    ],
)
def test_dmons_times_are_read_with_and_without_a_date(reading, heads, stamps, seconds):
    text = f"{heads[0]} gpu  pwr\n{heads[1]} Idx    W\n {stamps[0]}   0  100\n {stamps[1]}   0  101\n"
    first, second = (row.time_ns for row in reading(text).series)
    assert second - first == seconds * 10**9


def test_the_series_are_those_of_our_own_collector():
    described = set(re.findall(r"`(\w+)`", fields.__doc__))
    assert {name for name, _ in [*nvidia_smi._SERIES.values(), *dmon._SERIES.values()]} <= described
