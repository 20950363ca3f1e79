"""Do several generator processes send together exactly what one would have sent: nothing lost, nothing twice?"""

import dataclasses
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfkit.measuring.load.loops import ClosedLoop, OpenLoop
from perfkit.measuring.load.mixes import PayloadSet
from perfkit.measuring.load.replay import Replay
from perfkit.measuring.load.schedule import plan_users
from perfkit.measuring.load.script import write_script
from perfkit.measuring.load.shape import Shape
from perfkit.measuring.load.share import Share
from perfkit.measuring.load.spec import LoadSpec
from perfkit.measuring.load.target import find_target

TARGET = find_target("http://127.0.0.1:80/predict")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two payload files and a schedule."""
    path = tmp_path_factory.mktemp("share")
    for name, count in (("a", 7), ("b", 5)):
        (path / f"{name}.jsonl").write_text("".join(f'{{"input": "{name} {at}"}}\n' for at in range(count)))
    rows = "".join(f"{at / 10},{at % 7},{'on' if at % 3 else 'off'}\n" for at in range(50))
    (path / "schedule.csv").write_text(f"at,payload,lane\n{rows}")
    return path


def sent(folder, load, seconds, seed):
    """(request id, due instant, bytes) of everything that all the generators of a load will send."""
    found = []
    for part in range(load.generators):
        spec = LoadSpec(
            url="http://127.0.0.1:80/predict",
            load=load,
            seconds=seconds,
            payloads=folder / "a.jsonl",
            samples=folder / "x",
            report=folder / "y",
            seed=seed,
            part=part,
        )
        script = write_script(spec, TARGET)
        turns = zip(script.offsets_ns, itertools.cycle(script.order), strict=False)
        for turn, (offset_ns, place) in enumerate(turns):
            parts = script.requests[place]
            found.append((1 + part + turn * load.generators, offset_ns, parts.before_id + parts.after_id))
    return sorted(found)


def loads(folder):
    mix = {"a": PayloadSet(file=str(folder / "a.jsonl"), weight=2.0), "b": PayloadSet(file=str(folder / "b.jsonl"))}
    return [
        OpenLoop(rate_rps=300),
        OpenLoop(rate_rps=300, arrivals="constant", mix=mix),
        OpenLoop(rate_rps=200, arrivals="bursty", profile="staircase", shape=Shape(levels="20/100/300")),
        OpenLoop(rate_rps=100, profile="ramp"),
        OpenLoop(arrivals="replay", replay=Replay(file=str(folder / "schedule.csv"))),
    ]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 4), st.integers(2, 7), st.integers(0, 1000))
def test_any_number_of_generators_has_the_schedule_of_one(folder, which, generators, seed):
    load = loads(folder)[which]
    together = sent(folder, dataclasses.replace(load, generators=generators), 4.0, seed)
    assert len(together) > 10
    assert together == sent(folder, load, 4.0, seed)


@given(st.sampled_from(["steady", "staircase", "ramp", "spike"]), st.integers(2, 40), st.integers(1, 5))
def test_the_users_of_a_closed_loop_are_shared_out_with_their_starts_and_shifts(profile, users, count):
    load = ClosedLoop(concurrency=users, profile=profile, think_time_s=1.0)
    whole = plan_users(load, 10.0, Share(seed=3))
    parts = [plan_users(load, 10.0, Share(seed=3, index=index, count=count)) for index in range(count)]
    assert sorted(first for part in parts for first in part.first_ns) == sorted(whole.first_ns)
    assert sorted(shifts for part in parts for shifts in part.shifts) == sorted(whole.shifts)


@given(st.integers(0, 1000), st.integers(1, 20))
def test_amounts_are_shared_out_without_a_rest(amount, count):
    shares = [Share(index=index, count=count).of_amount(amount) for index in range(count)]
    assert sum(shares) == amount
    assert max(shares) - min(shares) <= 1
