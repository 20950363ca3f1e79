"""What do the server's tests share: parts that stand in for the device, and ways to wait without guessing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from perfkit.serving.server.job import Job

_PATIENCE_S = 20.0


class Finished:
    """Where finished jobs go: an outbox without an event loop. Any thread puts."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []

    def put(self, jobs: Any) -> None:
        self.jobs.extend(jobs)


@pytest.fixture
def finished() -> Finished:
    """An outbox that keeps what it gets."""
    return Finished()


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


@pytest.fixture
def new_job() -> Callable[..., Job]:
    """Makes jobs that nobody waits for."""

    def make(payload: Any = None, *, row: int = 0, deadline_ns: int = 0) -> Job:
        return Job(payload, receiver=None, row=row, deadline_ns=deadline_ns)

    return make
