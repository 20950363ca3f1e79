"""Does each name stand for the load that it says, at the level given?"""

import pytest

from perfkit.errors import ConfigError
from perfkit.measuring.load.loops import ClosedLoop, OpenLoop
from perfkit.measuring.load.profiles import PROFILES_BY_NAME, Level, profile_load, read_stable, usual_seconds
from perfkit.measuring.load.replay import Replay
from perfkit.measuring.load.shape import Shape


@pytest.mark.parametrize(
    ("name", "level", "load"),
    [
        ("smoke", Level(), ClosedLoop(concurrency=1, profile="smoke")),
        ("staircase", Level(), ClosedLoop(concurrency=100, profile="staircase")),
        ("staircase", Level(rate_rps=200.0), OpenLoop(rate_rps=200.0, profile="staircase")),
        ("ramp", Level(users=30), ClosedLoop(concurrency=30, profile="ramp")),
        ("spike", Level(rate_rps=20.0), OpenLoop(rate_rps=20.0, profile="spike")),
        ("constant", Level(rate_rps=20.0), OpenLoop(rate_rps=20.0, arrivals="constant")),
        ("poisson", Level(rate_rps=20.0), OpenLoop(rate_rps=20.0)),
        ("bursty", Level(rate_rps=20.0), OpenLoop(rate_rps=20.0, arrivals="bursty")),
        ("replay", Level(), OpenLoop(arrivals="replay")),
    ],
)
def test_a_name_is_a_load(name, level, load):
    assert profile_load(name, level) == load


def test_a_soak_is_three_quarters_of_the_stable_load():
    assert profile_load("soak", Level(), Level(users=20)) == ClosedLoop(
        concurrency=15, profile="soak", shape=Shape(stable=20.0)
    )
    assert profile_load("soak", Level(), Level(rate_rps=400.0)) == OpenLoop(
        rate_rps=300.0, profile="soak", shape=Shape(stable=400.0)
    )
    assert profile_load("soak", Level(users=14), Level(users=20)).level == 14


@pytest.mark.parametrize(
    ("name", "level", "complaint"),
    [
        ("slope", Level(), "profile is 'slope'; it takes one of smoke, staircase"),
        ("poisson", Level(), "poisson is an open loop and needs its rate"),
        ("bursty", Level(users=3), "bursty is an open loop, which has no users"),
        ("soak", Level(users=3), "a soak needs the load that was stable before"),
        ("smoke", Level(users=3), "a smoke test has one user"),
    ],
)
def test_what_does_not_go_together_is_refused(name, level, complaint):
    with pytest.raises(ConfigError, match=complaint):
        profile_load(name, level)


def test_a_stable_load_is_users_or_a_rate():
    assert read_stable("20") == Level(users=20)
    assert read_stable("400rps") == Level(rate_rps=400.0)
    with pytest.raises(ConfigError, match=r"stable is 'lots'; it takes users \(20\)"):
        read_stable("lots")


def test_a_replay_lasts_as_long_as_its_file_and_others_as_is_usual(tmp_path):
    (tmp_path / "s.csv").write_text("at\n0\n22\n")
    load = OpenLoop(arrivals="replay", replay=Replay(file=str(tmp_path / "s.csv"), speed=2.0))
    assert usual_seconds("replay", load) == pytest.approx(10.0)
    assert usual_seconds(None, ClosedLoop()) == 10.0
    assert usual_seconds("soak", ClosedLoop()) == PROFILES_BY_NAME["soak"].seconds == 600.0
