"""Which process gets which core?"""

import os

import pytest

from perfkit.measuring.placement import Placement, place

SHARED = Placement(server_cpus=None, generator_cpus=None, generator_nice=-10)


@pytest.fixture
def cores(monkeypatch):
    """A function that sets the cores of this machine."""
    return lambda *numbers: monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(numbers))


@pytest.mark.parametrize("model", ["noop", "simulated:s001-a10"])
def test_a_model_that_computes_nothing_leaves_the_generator_a_core_of_its_own(cores, model):
    cores(2, 5, 7)
    assert place(model) == Placement(server_cpus=(2, 5), generator_cpus=(7,), generator_nice=None)


@pytest.mark.parametrize("model", ["minilm", "mymodels:Noop", ""])
def test_a_model_that_computes_on_the_cpu_gets_all_cores_and_the_generator_goes_first(cores, model):
    cores(0, 1)
    assert place(model) == SHARED


def test_on_a_single_core_all_share_it(cores):
    cores(0)
    assert place("noop") == SHARED
