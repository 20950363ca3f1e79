"""Runs made for tests of the comparison: figures given, nothing measured."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

import numpy as np
import pytest

from perfkit.measuring.analysis.compare.replicate import Replicate

USUAL = {"throughput_rps": 100.0, "p50_s": 0.010, "p95_s": 0.020}
RUN = Replicate(
    run_id="made",
    created="2026-01-01T00:00:00+00:00",
    grade="sound",
    reasons=(),
    requests=1_000,
    values={**USUAL, "p99_s": None},
    error_ratio=0.0,
    stolen_ratio=None,
    load_average=None,
)


@pytest.fixture
def void() -> Replicate:
    """A run whose instruments failed."""
    return dataclasses.replace(RUN, grade="void", reasons=("late generator",), values=dict.fromkeys(RUN.values))


@pytest.fixture
def replicates() -> Callable[..., list[Replicate]]:
    """Sound runs whose figures scatter, each by its own draw, `factors` away from the usual."""

    def make(
        count: int, seed: int, spread: float = 0.01, factors: Mapping[str, float] | None = None, **facts: float
    ) -> list[Replicate]:
        draws = np.random.default_rng(seed)
        shifted = {name: value * (factors or {}).get(name, 1.0) for name, value in USUAL.items()}
        values = (
            {name: value * float(np.exp(draws.normal(0, spread))) for name, value in shifted.items()}
            for _ in range(count)
        )
        return [dataclasses.replace(RUN, values={"p99_s": None} | one, **facts) for one in values]

    return make
