"""Do workers get whole physical cores first, and the background what they leave? Over made-up machines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfkit.serving.scheduling.pinning import Cpu, Plan, physical_first, plan_pinning


def machine(packages, cores, threads):
    """As Linux numbers it: one hardware thread of every core, then the second of each."""
    places = [(package, core) for package in range(packages) for core in range(cores)]
    return [
        Cpu(number=thread * len(places) + index, package=package, core=core)
        for thread in range(threads)
        for index, (package, core) in enumerate(places)
    ]


def plan(cpus, workers, threads_each=1, usable=None):
    return plan_pinning(cpus, len(cpus) if usable is None else usable, workers, threads_each)


@pytest.mark.parametrize(
    ("what", "found", "wanted"),
    [
        ("one core", plan(machine(1, 1, 1), 1), Plan(workers=((0,),), background=(0,))),
        ("two cores, one worker", plan(machine(1, 2, 1), 1), Plan(workers=((0,),), background=(1,))),
        ("two cores, two workers", plan(machine(1, 2, 1), 2), Plan(workers=((0,), (1,)), background=(0, 1))),
        ("more workers than cores", plan(machine(1, 2, 1), 3), Plan(workers=((0,), (1,), (0,)), background=(0, 1))),
        (
            "four physical cores of two threads: the workers' siblings stay idle",
            plan(machine(1, 4, 2), 2),
            Plan(workers=((0,), (1,)), background=(2, 3, 6, 7)),
        ),
        (
            "all physical cores are workers': the background has their siblings",
            plan(machine(1, 4, 2), 2, threads_each=2),
            Plan(workers=((0, 1), (2, 3)), background=(4, 5, 6, 7)),
        ),
        (
            "beyond the physical cores, siblings are taken",
            plan(machine(1, 2, 2), 3),
            Plan(workers=((0,), (1,), (2,)), background=(3,)),
        ),
        (
            "a quota of two cores on a machine of eight",
            plan(machine(1, 8, 1), 1, usable=2),
            Plan(workers=((0,),), background=(1,)),
        ),
        (
            "more intra-op threads than cores",
            plan(machine(1, 2, 1), 2, threads_each=8),
            Plan(workers=((0, 1), (0, 1)), background=(0, 1)),
        ),
    ],
)
def test_the_plan_for(what, found, wanted):
    assert found == wanted


def test_two_packages_are_filled_one_after_the_other():
    assert plan(machine(2, 2, 1), 2).workers == ((0,), (1,))
    assert {cpu.package for cpu in physical_first(machine(2, 2, 2))[:2]} == {0}


def test_siblings_that_are_numbered_side_by_side_are_still_told_apart():
    cpus = [Cpu(number=number, package=0, core=number // 2) for number in range(8)]
    assert plan(cpus, 3).workers == ((0,), (2,), (4,))


def test_a_mask_with_holes_is_planned_within():
    cpus = [cpu for cpu in machine(1, 8, 2) if cpu.number in (3, 5, 11)]
    assert plan(cpus, 1) == Plan(workers=((3,),), background=(5,))


MACHINES = st.builds(machine, st.integers(1, 2), st.integers(1, 8), st.integers(1, 2))


@given(MACHINES, st.integers(1, 20), st.integers(1, 8), st.data())
def test_every_plan_stays_within_the_machine_and_is_apart_exactly_when_there_is_room(cpus, workers, each, data):
    usable = data.draw(st.integers(1, len(cpus)))
    found = plan(cpus, workers, each, usable)
    allowed = {cpu.number for cpu in physical_first(cpus)[:usable]}
    used = {number for share in found.workers for number in share}
    assert used <= allowed
    assert set(found.background) <= allowed
    assert found.background
    assert [len(share) for share in found.workers] == [min(each, usable)] * workers
    assert found.is_apart == (workers * each < usable)
    loads = [sum(number in share for share in found.workers) for number in allowed]
    assert max(loads) - min(load for load in loads if load or workers * each >= usable) <= 1
