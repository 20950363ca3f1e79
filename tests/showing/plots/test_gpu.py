"""Does the GPU's picture show what was recorded, in units, and nothing where nothing was?"""

import pandas as pd
import pytest

from perfkit.showing.plots.gpu import gpu_table, plot_gpu

S = 1_000_000_000


def series(*rows):
    return pd.DataFrame(rows, columns=["time_ns", "source", "name", "unit", "value"])


REAL = series(
    (1 * S, "gpu:GPU-7", "gpu_util", "ratio", 1.0),
    (1 * S, "gpu:GPU-7", "sm_active", "ratio", 0.01),
    (1 * S, "gpu:GPU-7", "power", "W", 400.0),
    (2 * S, "gpu:GPU-7", "power", "W", 650.0),
    (1 * S, "gpu:GPU-7", "pcie_tx", "bytes", 10e6),
    (2 * S, "gpu:GPU-7", "pcie_tx", "bytes", 25e6),
    (3 * S, "gpu:GPU-7", "pcie_tx", "bytes", 5e6),  # the counter has wrapped
    (2 * S, "gpu:GPU-7", "pcie_rx_rate", "bytes/s", 3e6),
    (2 * S, "gpu:GPU-7", "power_call", "s", 0.001),
    (2 * S, "gpu:GPU-7:pid:9", "memory_used", "bytes", 5.0),
    (2 * S, "gpu:simulated", "gpu_util", "ratio", 0.5),
    (2 * S, "process", "rss", "bytes", 7.0),
)


def test_gauges_stand_as_they_are_and_counters_as_growth_a_second():
    table = gpu_table(REAL)
    assert table.to_dict("records") == [
        {"gpu": "GPU-7", "elapsed_s": at_s, "name": name, "value": value}
        for at_s, name, value in [
            (0.0, "gpu_util", 1.0),
            (0.0, "sm_active", 0.01),
            (0.0, "power", 400.0),
            (1.0, "power", 650.0),
            (1.0, "pcie_tx", 15e6),
            (1.0, "pcie_rx", 3e6),
        ]
    ]


def test_the_simulated_devices_seconds_of_activity_become_a_share_and_the_real_gpu_stays_out():
    rows = series(
        (1 * S, "gpu:simulated", "sm_active", "s", 1.0),
        (3 * S, "gpu:simulated", "sm_active", "s", 1.5),
        (3 * S, "gpu:GPU-7", "gpu_util", "ratio", 0.0),
    )
    assert gpu_table(rows, simulated=True).to_dict("list") == {
        "gpu": ["simulated"],
        "elapsed_s": [0.0],
        "name": ["sm_active"],
        "value": [0.25],
    }


def test_only_what_was_recorded_has_a_panel_and_every_axis_has_its_unit():
    figure = plot_gpu(gpu_table(REAL), title="GPU of a run")
    axes = [axis.title.text for axis in figure.select_yaxes()]
    assert axes == ["activity (%)", "power (W)", "PCIe (MB/s)"]
    drawn = {trace.name: trace.y for trace in figure.data}
    assert drawn == {
        "at least one kernel ran": (100.0,),
        "multiprocessors that worked": (1.0,),
        "power, mean of the last second": (400.0, 650.0),
        "from the GPU": (15.0,),
        "to the GPU": (3.0,),
    }


def test_several_gpus_are_told_apart_by_their_dashes_and_names():
    rows = series((1, "gpu:A", "power", "W", 1.0), (1, "gpu:B", "power", "W", 2.0))
    figure = plot_gpu(gpu_table(rows))
    assert [(trace.name[-3:], trace.line.dash) for trace in figure.data] == [(", A", "solid"), (", B", "dot")]


@pytest.mark.parametrize("simulated", [True, False])
def test_a_run_without_a_gpu_is_an_empty_table_and_an_empty_figure(simulated):
    table = gpu_table(series((1, "process", "rss", "bytes", 7.0)), simulated=simulated)
    assert len(table) == 0
    assert len(plot_gpu(table).data) == 0
