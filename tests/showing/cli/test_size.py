"""Does `perfkit size` put the formulas beside a run, and say what it lacks?"""

import dataclasses
import json

import pytest

from perfkit.measuring.archive.folder import RunContents, save_run
from perfkit.measuring.archive.manifest import Manifest


@pytest.fixture
def run_folder(tmp_path):
    """An archived point with a server's ledger: 300 req/s of 0.1 s each, 30 in flight by the gauge."""
    point = {
        "simulated": True,
        "settings": {"workers": 4},
        "varied": {},
        "load": {"loop": "closed", "concurrency": 32, "think_time_s": 0.0},
        "throughput_rps": {"value": 300.0, "low": 290.0, "high": 310.0},
        "stages_s": {"send": 0.001, "queue_wait": 0.06, "compute": 0.04, "receive": None},
        "in_flight_mean": 30.0,
        "queue_depth_mean": 18.0,
        "workers_busy_ratio": 0.9,
        "grade": "sound",
    }
    manifest = Manifest(
        id="r", created="2026-11-30T12:00:00+00:00", simulated=True, certificate=point, environment={"usable_cores": 2}
    )

    def save(**changes):
        place = tmp_path / f"run-{len(list(tmp_path.iterdir()))}"
        save_run(place, RunContents(manifest=dataclasses.replace(manifest, **changes), tables={}, stacks={}, logs={}))
        return place

    return save


def test_a_run_is_told_with_its_own_figures(perfkit, run_folder):
    document = json.loads(perfkit("size", str(run_folder()), "--json").out)
    told = {one["name"]: (one["value"], one["measured"]) for one in document["sizes"]}
    assert (document["schema"], document["simulated"]) == (1, True)
    assert told["in flight"] == (pytest.approx(30.0), 30.0)
    assert told["client threads"] == (40, 32.0)
    assert told["pool size"] == (18, pytest.approx(3.6))
    assert told["queue depth"] == (18, 18.0)
    assert told["threads, doubled"] == (4, 4.0)


def test_the_table_names_formulas_and_sources(perfkit, run_folder):
    out = perfkit("size", str(run_folder())).out
    assert "· simulated" in out
    assert "in flight: X W; seed 001, section 4.1; Little 1961" in out


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((), "size got neither a folder nor --rate and --time"),
        (("--rate", "3"), "size got neither a folder nor --rate and --time"),
        (("--rate", "-3", "--time", "1"), "rate_rps is -3; it takes a number, 0 or more"),
    ],
)
def test_what_is_missing_is_said(perfkit, words, complaint):
    ended = perfkit("size", *words)
    assert ended.code == 2
    assert complaint in ended.line


def test_a_run_without_cores_or_without_figures_is_refused(perfkit, run_folder):
    assert "give --cores N" in perfkit("size", str(run_folder(environment={}))).line
    void = run_folder(certificate={"grade": "void", "simulated": False})
    assert "holds no figures that count (void)" in perfkit("size", str(void)).line
