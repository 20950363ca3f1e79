"""Which cells are measured, which of them count, and is the preset's file the preset?"""

from __future__ import annotations

import dataclasses

import pytest

from perfkit import fields
from perfkit.errors import ConfigError
from perfkit.explaining.twin.calibrate import Calibration, CellResult, Order, build_preset, plan_cells
from perfkit.explaining.twin.copies import CopyRates
from perfkit.explaining.twin.fit import fit
from perfkit.explaining.twin.preset_file import is_busy, preset_name, preset_text, write_preset
from perfkit.serving.devices.simulated.preset import read_preset
from perfkit.settings.server import ServerSettings

from .test_fit import cell

RATES = CopyRates(h2d_bytes_per_s=2e10, d2h_bytes_per_s=1e10, pageable_bytes_per_s=5e9, copy_latency_s=1e-5)
SETTINGS = ServerSettings(model="simulated:x", topology="staged")
MACHINE = {
    "machine": "0123456789abcdef",
    "cpu_model": "Some CPU",
    "usable_cores": 2,
    "load_average": 0.3,
    "python": "3.11.7",
    "packages": {"perfkit": "0.1.0", "torch": "2.13.0"},
}


def result(predicted_rps, measured_rps=100.0, spread_ratio=0.01, **facts):
    values = {"workers": 2, "max_size": 8, "is_fitted": False, "measured_rps": measured_rps}
    return CellResult(**values | {"spread_ratio": spread_ratio, "predicted_rps": predicted_rps} | facts)


def calibration(*cells, copies=None, slots=2, **machine):
    found = fit([cell(1, 1), cell(1, 16), cell(2, 4, growth=1.2)], slots=slots)
    return Calibration(
        model=SETTINGS.model,
        is_simulated=True,
        device="simulated",
        preset=build_preset(SETTINGS.model, "simulated", found, slots, copies),
        fit=found,
        copies=copies,
        cells=cells,
        environment=MACHINE | machine,
        created="2026-01-01T00:00:00.000+00:00",
        scan=None,
    )


def test_one_worker_tells_the_calls_and_as_many_as_compute_side_by_side_tell_contention():
    assert plan_cells(1, checks=False) == dict.fromkeys([(1, 1), (1, 4), (1, 16)], True)
    assert plan_cells(4, checks=False) == dict.fromkeys([(1, 1), (1, 4), (1, 16), (4, 1), (4, 16)], True)


@pytest.mark.parametrize("slots", [1, 2, 4])
def test_a_check_adds_at_least_six_cells_and_fits_to_none_of_them(slots):
    fitted, cells = plan_cells(slots, checks=False), plan_cells(slots, checks=True)
    added = {place: is_fitted for place, is_fitted in cells.items() if place not in fitted}
    assert len(added) >= 6
    assert set(added.values()) == {False}
    assert {place: cells[place] for place in fitted} == fitted


def test_fitted_unsteady_and_unmeasured_cells_are_shown_and_not_judged():
    good, bad = result(110.0), result(80.0)
    others = (
        result(500.0, is_fitted=True),
        result(500.0, spread_ratio=0.16),
        result(500.0, spread_ratio=None),
        result(500.0, measured_rps=None),
    )
    whole = calibration(good, *others, bad)
    assert whole.judged == (good, bad)
    assert whole.median_error_ratio == pytest.approx(0.15)
    assert [one.is_judged for one in others] == [False] * 4
    assert calibration(*others).median_error_ratio is None
    assert others[-1].error_ratio is None


@pytest.mark.parametrize(("copies", "slots"), [(None, 2), (RATES, 1)], ids=["in place", "with copies"])
def test_the_file_reads_back_as_the_preset(copies, slots, tmp_path):
    whole = calibration(result(110.0), result(80.0, measured_rps=None), copies=copies, slots=slots)
    path = tmp_path / "x.toml"
    write_preset(whole, path)
    found = read_preset(path)
    expected = dataclasses.replace(whole.preset, name="x")
    assert dict(fields.values(found.device)) == pytest.approx(dict(fields.values(expected.device)), abs=1e-6)
    assert dict(fields.values(found.service)) == pytest.approx(dict(fields.values(expected.service)), abs=1e-6)
    assert (found.source, found.server_defaults) == (expected.source, expected.server_defaults)
    if copies is not None:
        assert found.device.input_bytes == round(0.0001 * 2e10)


def test_the_file_says_where_when_and_how_sure():
    text = preset_text(calibration(result(110.0), load_average=4.0))
    assert "machine 0123456789abcdef: Some CPU" in text
    assert "2026-01-01T00:00:00.000+00:00" in text
    assert "The machine was busy with other work" in text
    assert (
        "workers 2, batch 8: measured 100 req/s, preset 110 req/s (+10.0%), predicted; rounds apart by 1.00 %" in text
    )
    assert "95 % interval over the rounds" in text
    assert not is_busy(calibration())


def test_a_preset_is_never_overwritten(tmp_path):
    path = tmp_path / "x.toml"
    path.write_text("mine")
    with pytest.raises(ConfigError, match=r"x\.toml exists already; name another folder with --out"):
        write_preset(calibration(), path)
    assert path.read_text() == "mine"


def test_a_models_name_becomes_a_files():
    assert [preset_name(name) for name in ("minilm", "simulated:bert-large", "my.models:Net")] == [
        "minilm",
        "simulated-bert-large",
        "my-models-net",
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"topology": "carry"}, "topology is carry, which knows no batches; calibrate with --set topology=staged"),
        ({"replicas": 2}, "a preset describes one pool of workers; calibrate with concurrency.model = pool"),
        ({"concurrency.model": "elastic"}, "a preset describes one pool of workers"),
    ],
)
def test_what_a_preset_cannot_describe_is_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        Order(settings=fields.replace(SETTINGS, changes))
