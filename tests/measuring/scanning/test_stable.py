"""Is the stable load read from the right points of an earlier measurement?"""

import pytest

from perfkit.errors import ConfigError
from perfkit.measuring.archive.folder import RunContents, save_run
from perfkit.measuring.archive.manifest import Manifest
from perfkit.measuring.load.profiles import Level
from perfkit.measuring.scanning.stable import find_stable, stable_level


def point(grade, loop="closed", level=8.0, **further):
    name = "concurrency" if loop == "closed" else "rate_rps"
    rate = {"value": 10.0, "low": 9.0, "high": 11.0}
    load = {"loop": loop, name: level}
    return {"grade": grade, "load": load, "throughput_rps": rate, "error_ratio": 0.0} | further


@pytest.fixture
def saved(tmp_path):
    """A run folder with this point."""

    def save(certificate):
        manifest = Manifest(id="r", created="2026-11-30T12:00:00+00:00", simulated=False, certificate=certificate)
        save_run(tmp_path / "run", RunContents(manifest=manifest, tables={}, stacks={}, logs={}))
        return tmp_path / "run"

    return save


def test_a_run_at_one_level_gives_that_level(saved):
    assert find_stable(str(saved(point("short", "open", 120.0)))) == Level(rate_rps=120.0)


def test_a_staircase_gives_its_highest_steady_step_up_to_the_knee(saved):
    steps = [point("sound", level=5), point("sound", level=10), point("short", level=20), point("unsteady", level=50)]
    moving = {"grade": "unsteady", "name": "ramp"}
    whole = point("unsteady", steps=[moving, *steps], knee=None)
    assert stable_level(saved(whole)) == Level(users=20)


def test_beyond_the_knee_nothing_is_called_stable(saved):
    steps = [point("sound", level=level) for level in (5, 10, 20)]
    knee = {"setting": "concurrency", "low": 12.0, "high": 20.0}
    assert stable_level(saved(point("unsteady", steps=steps, knee=knee))) == Level(users=10)


def test_a_knee_of_another_setting_is_none_of_the_loads(saved):
    knee = {"setting": "workers", "low": 2.0, "high": 2.0}
    assert stable_level(saved(point("sound", level=8, knee=knee))) == Level(users=8)


def test_where_nothing_was_stable_that_is_said(saved):
    with pytest.raises(ConfigError, match=r"nothing in .*run was stable \(unsteady\); measure a staircase first"):
        stable_level(saved(point("unsteady")))


def test_a_text_that_is_no_folder_is_a_load():
    assert find_stable("20") == Level(users=20)
