"""Does the sampler keep to its grid, ask the dear fields once a second, and leave its facts behind?"""

import json
import os
from pathlib import Path

import pytest

from perfkit.clock import epoch_ns
from perfkit.errors import CollectorUnavailable
from perfkit.measuring.collectors.nvml.library import list_gpus
from perfkit.measuring.collectors.nvml.process import Spec, Surroundings, _chosen, sample
from perfkit.measuring.collectors.nvml.watch import GpuWatch
from perfkit.measuring.collectors.series import read_series

MS = 1_000_000


@pytest.fixture
def spec(tmp_path):
    return Spec(
        pid=os.getpid(),
        series=str(tmp_path / "gpu.series"),
        facts=str(tmp_path / "gpu.facts.json"),
        rate_hz=5.0,
        niceness=0,
        uuid=None,
    )


def run_looks(spec, nvml, clock, count, late=()):
    """Sample for as many pauses; the pause before a look in `late` overshoots by 30 ms."""
    pauses = []

    def pause(nanoseconds):
        pauses.append(nanoseconds)
        clock.advance(nanoseconds + (30 * MS if len(pauses) in late else 0))
        return len(pauses) == count

    watches = [GpuWatch(nvml, gpu, clock, epoch_ns) for gpu in list_gpus(nvml)]
    around = Surroundings(clock=clock, wait_for_stop=pause, announce=lambda: None)
    sample(spec, watches, around, driver="580.00.stub")
    return read_series(Path(spec.series)), pauses


def test_a_spec_survives_its_file(spec):
    assert Spec.from_json(spec.to_json()) == spec


def test_looks_keep_to_the_grid_and_say_how_late_they_came(spec, nvml, clock):
    rows, pauses = run_looks(spec, nvml, clock, count=4, late={2})
    assert pauses == [200 * MS, 200 * MS, 170 * MS, 200 * MS]
    late_s = [row.value for row in rows if row.name == "lateness"]
    assert late_s == pytest.approx([0.0, 0.0, 0.03, 0.0, 0.0])
    assert len([row for row in rows if row.source == "gpu_sampler" and row.name == "cpu"]) == 5


def test_quick_fields_are_asked_five_times_a_second_and_dear_ones_once(spec, nvml, clock):
    rows, _ = run_looks(spec, nvml, clock, count=10)
    asked = {name: len([row for row in rows if row.name == name]) for name in ("power", "gpu_util", "processes")}
    assert asked == {"power": 11, "gpu_util": 11, "processes": 3}


def test_what_the_gpu_is_and_what_it_does_not_tell_lies_beside_the_series(spec, nvml, clock, plan, tmp_path):
    plan(GPUS=2, FAIL="nvmlDeviceGetPowerUsage=3")
    run_looks(spec, nvml, clock, count=2)
    facts = json.loads((tmp_path / "gpu.facts.json").read_text())
    assert facts["driver"] == "580.00.stub"
    assert [(gpu["name"], list(gpu["missing"]), gpu["lost"]) for gpu in facts["gpus"]] == [
        ("Stub H200", ["power"], None),
        ("Stub H201", ["power"], None),
    ]


def test_a_gpu_that_the_driver_does_not_show_is_an_error_that_lists_those_it_does(nvml):
    gpus = list_gpus(nvml)
    assert _chosen(gpus, None) == gpus
    with pytest.raises(CollectorUnavailable, match=r"on GPU 1234, which the driver does not show here \(GPU-0000"):
        _chosen(gpus, "1234")
