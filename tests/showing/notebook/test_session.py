"""Does a session launch, run, stop, and tell what went wrong, without leaving anything behind?"""

import threading

import psutil
import pytest

from perfkit import ClosedLoop
from perfkit.errors import ConfigError, TargetFailed
from perfkit.showing.notebook.session import RUNNING, STARTING, STOPPING, Session

LOAD = ClosedLoop(concurrency=4)


class Screen:
    """Keeps what it is told."""

    def __init__(self):
        self.states, self.runs, self.errors = [], [], []
        self.goes_on = threading.Event()

    def show_state(self, state):
        self.states.append(state)

    def show_progress(self, progress):
        if progress.samples[0].exists():
            self.goes_on.set()

    def show_run(self, run):
        self.runs.append(run)

    def show_error(self, text):
        self.errors.append(text)


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """A session of the no-op model; its screen and its folder are new for each test."""
    session = Session("noop", Screen(), tmp_path_factory.mktemp("runs"))
    yield session
    session.close()


@pytest.fixture
def screen(session):
    session._screen = Screen()
    return session._screen


def test_a_run_is_archived_and_shown(session, screen):
    session.configure({"workers": 3})
    session.start(LOAD, 0.3)
    run = session.wait()
    assert screen.runs == [run]
    assert screen.states == [STARTING, RUNNING, ""]
    assert (run.point["settings"]["workers"], screen.errors) == (3, [])


def test_a_running_service_takes_a_setting_up_at_once(session, screen):
    session.start(LOAD, 0.2)
    session.wait()
    session.configure({"workers": 5})
    assert session.service.settings.workers == 5


def test_a_second_start_waits_for_the_first_run_to_end(session, screen):
    session.start(LOAD, 30)
    with pytest.raises(ConfigError, match="a run is going on; stop it, or wait until it has ended"):
        session.start(LOAD, 30)
    screen.goes_on.wait(20)
    session.stop()
    session.wait()


def test_a_stopped_run_keeps_what_was_measured(session, screen):
    session.start(LOAD, 60)
    screen.goes_on.wait(20)
    session.stop()
    run = session.wait()
    assert screen.states == [STARTING, RUNNING, STOPPING, ""]
    assert len(run.table("requests")) > 0
    assert run.stored.manifest.generator_reports[0]["wall_s"] < 30


def test_a_run_whose_settings_were_moved_says_so(session, screen):
    session.configure({"workers": 1})
    session.start(LOAD, 60)
    screen.goes_on.wait(20)
    session.configure({"workers": 2})
    session.stop()
    notes = session.wait().stored.manifest.notes
    assert "settings were changed while this run went on, its figures mix them: workers 1 to 2" in notes


def test_the_death_of_the_service_is_told_and_the_next_start_launches_a_new_one(session, screen):
    session.start(LOAD, 60)
    screen.goes_on.wait(20)
    died = session.service.pid
    psutil.Process(died).kill()
    with pytest.raises(TargetFailed):
        session.wait()
    assert "ended with exit code -9" in screen.errors[0]
    session.start(LOAD, 0.2)
    session.wait()
    assert session.service.pid != died


def test_a_setting_that_the_service_refuses_is_told(session, screen):
    session.start(LOAD, 0.2)
    session.wait()
    session.configure({"workers": 0})
    session.configure({"workers": 1})
    assert screen.errors == ["workers is 0; it takes a whole number from 1 to 1024"]


def test_closing_ends_the_service_and_a_session_without_a_run_has_nothing_to_wait_for(session, screen):
    fresh = Session("noop", screen)
    fresh.close()
    with pytest.raises(ConfigError, match="no run was started"):
        fresh.wait()
    session.start(LOAD, 0.2)
    pid = session.wait() and session.service.pid
    session.close()
    assert not psutil.pid_exists(pid)
