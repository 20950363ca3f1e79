"""What do the report's tests show? Made-up points and a small flame graph, the same as the pictures' tests."""

import json
from pathlib import Path

import pytest

from perfkit.showing.report import ReportData

SHOWING = Path(__file__).parents[1]


@pytest.fixture
def points() -> dict:
    """Series of points by name and the knees that go with them; fresh in each test."""
    return json.loads((SHOWING / "plots" / "points.json").read_text("utf-8"))


@pytest.fixture
def report(points: dict) -> ReportData:
    """A whole report: two scans, one with two payload sets; a flame graph; a comparison."""
    batch = {"short queries": points["short"], "mixed lengths": points["mixed"]}
    knees = {"short queries": points["knee_short"], "mixed lengths": points["knee_mixed"]}
    return ReportData(
        title="Demo of minilm",
        simulated=False,
        created="2026-11-30 10:12 UTC",
        recommendation="Set batch.max_size to 8: most throughput inside the budget.",
        scans=[
            {
                "title": "Worker threads",
                "varied": "workers",
                "series": {"": points["workers"]},
                "knee": points["knee_workers"],
                "best": points["best"],
            },
            {"title": "Max batch size", "varied": "batch.max_size", "series": batch, "knee": knees, "best": None},
        ],
        flame=json.loads((SHOWING / "web" / "flame.json").read_text("utf-8")),
        comparison={"default": points["short"][0], "recommended": points["short"][3]},
        comparison_verdict="faster: throughput +98 % (95 % CI +91 to +104 %, 5 + 5 rounds)",
        environment={"usable_cores": 2, "memory_bytes": 1 << 33, "packages": {"torch": "2.13.0"}, "container": None},
    )
