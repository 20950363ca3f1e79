"""Runs recorded once from a no-op service, to be replayed instead of measured."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from perfkit.measuring.archive.folder import RunContents
from perfkit.measuring.archive.manifest import new_id
from perfkit.measuring.comparing import baseline, interleaving
from perfkit.measuring.comparing.interleaving import measure_replicate
from perfkit.measuring.comparing.plan import ComparisonPlan, Side
from perfkit.measuring.load.loops import ClosedLoop
from perfkit.settings.server import ServerSettings

LOAD = ClosedLoop(concurrency=2)


@pytest.fixture
def plan_of() -> Callable[..., ComparisonPlan]:
    """A plan that compares one worker with two."""

    def make(pairs: int = 4, workers: int = 2, **more: float) -> ComparisonPlan:
        sides = (
            Side(label=f"workers={count}", settings=ServerSettings(model="noop", workers=count), load=LOAD)
            for count in (1, workers)
        )
        return ComparisonPlan(a=next(sides), b=next(sides), pairs=pairs, seconds=0.2, **more)

    return make


@pytest.fixture(scope="session")
def recorded() -> RunContents:
    """One certified run, called sound however busy the machine was."""
    side = Side(label="one", settings=ServerSettings(model="noop"), load=LOAD)
    contents = measure_replicate(side, 0, 0.2, lambda progress: None)
    rate = {"value": 100.0, "low": None, "high": None}
    certificate = {**contents.manifest.certificate, "grade": "sound", "reasons": [], "throughput_rps": rate}
    return dataclasses.replace(contents, manifest=dataclasses.replace(contents.manifest, certificate=certificate))


@pytest.fixture
def replayed(recorded, monkeypatch) -> list[tuple[str, int]]:
    """Which runs were asked for; each is the recorded one, with the settings and the place asked for."""
    asked: list[tuple[str, int]] = []

    def replay(side, pair, seconds, report):
        asked.append((side.label, pair))
        created = f"2026-01-01T00:00:{len(asked):02d}+00:00"
        manifest = dataclasses.replace(
            recorded.manifest,
            id=new_id(created),
            created=created,
            settings={**recorded.manifest.settings, "workers": side.settings.workers, "seed": pair},
        )
        return dataclasses.replace(recorded, manifest=manifest)

    for user in (interleaving, baseline):
        monkeypatch.setattr(user, "measure_replicate", replay)
    return asked
