"""Are stacks recorded under load, each kind apart, and never passed off as a measurement?"""

import sys

import psutil
import pytest

from perfkit.clock import NS_PER_S, REAL_CLOCK
from perfkit.errors import CollectorUnavailable, ConfigError
from perfkit.measuring.collectors import pyspy
from perfkit.measuring.collectors.collector import Target
from perfkit.measuring.collectors.pyspy import MODES
from perfkit.measuring.experiment import open_run
from perfkit.measuring.load.loops import ClosedLoop
from perfkit.measuring.profile import StackSequence, profile
from perfkit.measuring.service import attach

LOAD = ClosedLoop(concurrency=4)
VOID = "a profiler was attached; a profiled phase never counts as a measurement"


@pytest.fixture
def fake_pyspy(monkeypatch, tmp_path):
    """A py-spy that says what it is told to and exits with 1."""

    def install(words):
        script = tmp_path / "py-spy"
        script.write_text(f"#!{sys.executable}\nprint({words!r})\nraise SystemExit(1)\n")
        script.chmod(0o755)
        monkeypatch.setattr(pyspy, "find_pyspy", lambda: str(script))

    return install


@pytest.fixture(scope="module")
def profiled(server, tmp_path_factory):
    """A short profile of the no-op model; skipped where the system forbids it."""
    try:
        return profile(server, LOAD, 0.3, tmp_path_factory.mktemp("profile"))
    except CollectorUnavailable as refusal:
        if "permission denied" in str(refusal):
            pytest.skip(str(refusal))
        raise


def test_each_kind_of_stacks_is_archived_apart(profiled):
    stacks = {recording["mode"]: recording for recording in open_run(profiled.folder).stacks()}
    assert sorted(stacks) == sorted(MODES)
    for recording in stacks.values():
        assert recording["sample_count"] == len(recording["samples"]["stack"])
        assert 0.2 < recording["seconds"] < 30
    assert sorted(path.name for path in (profiled.folder / "stacks").iterdir()) == [
        "default.json",
        "gil.json",
        "idle.json",
    ]


def test_a_profiled_run_is_void_and_says_why(profiled):
    assert (profiled.grade, profiled.point["valid"]) == ("void", False)
    assert VOID in profiled.point["reasons"]
    assert profiled.point["throughput_rps"] == {"value": None, "low": None, "high": None}


def test_the_load_ends_with_the_last_recording_and_the_profilers_are_gone(profiled, server):
    report = profiled.stored.manifest.generator_reports[0]
    assert report["was_stopped"] is True
    assert [child.name() for child in psutil.Process(server.pid).children()] == []
    assert "py-spy" not in {process.name() for process in psutil.Process().children(recursive=True)}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("Permission Denied: try again", "permission denied"),
        ("Error: some other trouble", "some other trouble"),
    ],
)
def test_a_profiler_that_may_not_look_fails_at_once_with_the_remedy(server, tmp_path, fake_pyspy, words, told):
    fake_pyspy(words)
    with pytest.raises(CollectorUnavailable, match=told):
        profile(server, LOAD, 100.0, tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_a_profiler_that_is_not_installed_fails_with_what_to_install(server, tmp_path, monkeypatch):
    def missing():
        raise CollectorUnavailable("py-spy is not there; install it with: pip install py-spy")

    monkeypatch.setattr(pyspy, "find_pyspy", missing)
    with pytest.raises(CollectorUnavailable, match=r"^stacks: py-spy is not there; install it with"):
        profile(server, LOAD, 100.0, tmp_path / "runs")


def test_a_service_of_somebody_else_is_not_profiled(foreign):
    with pytest.raises(ConfigError, match="profile a service that perfkit launched"):
        profile(attach(foreign.url), LOAD)


def test_no_time_to_record_is_refused(server):
    with pytest.raises(ConfigError, match="seconds is 0; it takes a number above 0"):
        profile(server, LOAD, 0)


def test_what_was_not_recorded_before_the_load_ended_is_named(server, tmp_path):
    """The load is cut short while the first kind still records."""
    sequence = StackSequence(60.0, MODES)
    try:
        sequence.start(Target(pid=server.pid, folder=tmp_path))
    except CollectorUnavailable as refusal:
        pytest.skip(str(refusal))
    REAL_CLOCK.sleep_until(REAL_CLOCK.now_ns() + NS_PER_S // 3)  # py-spy keeps nothing without a sample
    assert sequence.is_recording
    recording = sequence.stop()
    assert not sequence.is_recording
    assert [path.name for path in recording.files] == ["default.json"]
    turn = "the load ended before its turn came; give more seconds"
    assert recording.notes[:2] == (f"pyspy-{MODES[1]}: {turn}", f"pyspy-{MODES[2]}: {turn}")
