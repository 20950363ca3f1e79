"""What do tests all over the tree share: a clock that stands still, a log, and a real server process."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import settings

from perfkit.clock import ManualClock
from perfkit.measuring.service import Service, launch

_PATIENCE_S = 20.0

settings.register_profile("perfkit", deadline=None)  # a busy machine is no failure
settings.load_profile("perfkit")


@pytest.fixture(autouse=True)
def _leaves_the_thread_as_it_was() -> Iterator[None]:
    """Inference mode that is left on, by a lane that stays open, would hold in all tests after."""
    yield
    torch = sys.modules.get("torch")
    assert torch is None or not torch.is_inference_mode_enabled(), "a lane was left open on this thread"


@pytest.fixture
def clock() -> ManualClock:
    """Time that moves only when the test says so; it starts at 1 s, because 0 means absent in a ledger."""
    return ManualClock(start_ns=1_000_000_000)


@pytest.fixture
def log() -> list[Any]:
    """What happened, in order, for tests that tell a story."""
    return []


@pytest.fixture(scope="module")
def server() -> Iterator[Service]:
    """The reference server with the no-op model, as a child process of its own."""
    with launch(model="noop") as service:
        yield service


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """In CI nothing may be skipped: a missing browser would otherwise look like a green run."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("PERFKIT_REQUIRE_ALL_TESTS") and reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture
def eventually() -> Callable[[Callable[[], Any]], None]:
    """Wait until something that another thread or process does has happened; fails when it never does."""
    pause = threading.Event()

    def wait_for(condition: Callable[[], Any]) -> None:
        for _ in range(round(_PATIENCE_S / 0.002)):
            if condition():
                return
            pause.wait(0.002)
        raise AssertionError(f"it did not happen within {_PATIENCE_S:g} s")

    return wait_for
