"""A notebook gets the findings of a device from a process of its own."""

import pytest

from perfkit.errors import EnvironmentLacks
from perfkit.measuring.gpucheck.child import Findings, check_device


def test_the_lines_of_the_wanted_checks_come_back():
    found = check_device("simulated:h200", 5, effort=0.05)
    assert [line["id"] for line in found.lines] == ["5.pinned", "5.overlap"]
    assert found.simulated
    assert found.figures("5.pinned")["gain_ratio"] > 1


def test_a_device_that_is_not_there_is_told_with_what_the_check_said():
    with pytest.raises(EnvironmentLacks, match="unknown preset 'nowhere'"):
        check_device("simulated:nowhere", 5)


def test_a_line_without_figures_says_why_it_has_none():
    line = {"id": "14.tokens", "figures": {}, "reason": "not built"}
    with pytest.raises(EnvironmentLacks, match=r"14\.tokens gave no figures: not built"):
        Findings(device="cuda", simulated=False, lines=(line,)).figures("14.tokens")
