"""What do the tests of the pictures look at? Points as `perfkit scan --json` gives them, made up but plausible."""

import json
from pathlib import Path

import pytest


@pytest.fixture
def points() -> dict:
    """Series of points by name ("workers", "short", "mixed") and the knees that go with them; fresh in each test."""
    return json.loads(Path(__file__).with_name("points.json").read_text("utf-8"))
