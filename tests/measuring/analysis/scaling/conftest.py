"""Points as `perfkit scan --json` gives them, over any setting and with any throughput."""

from collections.abc import Mapping
from typing import Any

import pytest


def one_point(value: Any, rate_rps: float, **more: Any) -> dict[str, Any]:
    """A sound point; `half` is half the throughput's interval relative to it, the rest replaces entries."""
    name, half, p99_s = more.pop("name", "concurrency"), more.pop("half", 0.002), more.pop("p99_s", 0.1)
    figure = {"value": p99_s, "low": p99_s, "high": p99_s}
    return {
        "varied": {name: value},
        "load": {"loop": "closed"},
        "settings": {"batch": {"max_size": 1}},
        "simulated": True,
        "throughput_rps": {"value": rate_rps, "low": rate_rps * (1 - half), "high": rate_rps * (1 + half)},
        "latency_s": {"p50": figure, "p95": figure, "p99": figure},
        "error_ratio": 0.0,
        "grade": "sound",
        **more,
    }


@pytest.fixture
def point():
    """One point: `point(users, rate, …)`."""
    return one_point


@pytest.fixture
def curve():
    """The points of a whole curve: `curve({users: rate}, …)`."""

    def build(rates: Mapping[Any, float], **more: Any) -> list[dict[str, Any]]:
        return [one_point(value, rate, **more) for value, rate in rates.items()]

    return build


@pytest.fixture
def law():
    """The universal scalability law: `law(users, g, s, k)` in requests a second."""
    return lambda users, g, s, k: g * users / (1 + s * (users - 1) + k * users * (users - 1))
