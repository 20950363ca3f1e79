"""Which points, in which order, from what a user wrote?"""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfkit import fields
from perfkit.errors import ConfigError
from perfkit.measuring.load.loops import ClosedLoop, OpenLoop
from perfkit.measuring.scanning.plan import Axis, Point, ScanPlan, find_field, grid, parse_value
from perfkit.settings.server import ServerSettings

NOOP = ServerSettings(model="noop")
CLOSED = ClosedLoop(concurrency=4)


def axes(**values):
    """Axes by bare name: workers=(1, 2)."""
    return {name: Axis(name=find_field(name, CLOSED), values=chosen) for name, chosen in values.items()}


def plan(points, rounds=2, seed=0):
    return ScanPlan(points=points, seconds=1.0, rounds=rounds, seed=seed)


@pytest.mark.parametrize(
    ("written", "full"),
    [
        ("workers", "server.workers"),
        ("server.workers", "server.workers"),
        ("max_size", "server.batch.max_size"),
        ("batch.max_size", "server.batch.max_size"),
        ("server.max_size", "server.batch.max_size"),
        ("concurrency", "load.concurrency"),
        ("load.concurrency", "load.concurrency"),
        ("keep_alive", "load.keep_alive"),
        ("load.seed", "load.seed"),
        ("server.seed", "server.seed"),
    ],
)
def test_a_field_is_found_by_any_name_that_means_only_one(written, full):
    assert find_field(written, CLOSED) == full


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("seed", "seed may mean server.seed or load.seed; write one of them"),
        ("threads", "threads may mean server.preprocess.threads or server.postprocess.threads; write one of them"),
        ("server.threads", "server.threads may mean server.preprocess.threads or server.postprocess.threads; write"),
        ("wrokers", "unknown setting wrokers; known with a load in closed loop: model, device, topology, workers"),
        ("load.workers", "unknown setting load.workers; known with a load in closed loop: model, device"),
        ("rate_rps", "unknown setting rate_rps; known with a load in closed loop: model"),
        ("", "unknown setting ; known"),
    ],
)
def test_a_name_that_means_none_or_several_is_refused_with_what_is_known(written, told):
    with pytest.raises(ConfigError) as refusal:
        find_field(written, CLOSED)
    assert str(refusal.value).startswith(told)


def test_what_a_load_has_depends_on_its_loop():
    assert find_field("rate_rps", OpenLoop()) == "load.rate_rps"
    with pytest.raises(
        ConfigError, match=r"^unknown setting concurrency; .* open loop: .*load\.rate_rps, load\.arrivals"
    ):
        find_field("concurrency", OpenLoop())


@pytest.mark.parametrize(
    ("full", "text", "value"),
    [
        ("server.workers", "4", 4),
        ("server.batch.max_delay_s", "0.005", 0.005),
        ("server.queue.deadline_s", "none", None),
        ("server.preprocess.placement", "threads", "threads"),
        ("load.keep_alive", "no", False),
        ("load.payloads", "texts/short.jsonl", "texts/short.jsonl"),
        ("load.think_time_s", "2", 2.0),
    ],
)
def test_a_value_is_read_by_the_fields_own_type(full, text, value):
    assert parse_value(full, text, CLOSED) == value


def test_a_value_of_another_type_is_refused():
    with pytest.raises(ConfigError, match=r"^workers is 'two'; it takes a whole number from 1 to 1024$"):
        parse_value("server.workers", "two", CLOSED)


def test_a_grid_holds_every_combination_in_the_order_given():
    points = grid(NOOP, CLOSED, axes(workers=(4, 1), concurrency=(2, 8)))
    assert [tuple(point.varied.values()) for point in points] == [(4, 2), (4, 8), (1, 2), (1, 8)]
    assert [(point.settings.workers, point.load.concurrency) for point in points] == [(4, 2), (4, 8), (1, 2), (1, 8)]
    assert list(points[0].varied) == ["workers", "concurrency"]


def test_profile_and_its_parameters_can_be_varied_as_any_field_of_the_load():
    load = OpenLoop(rate_rps=10.0)
    wanted = {"profile": ("steady", "spike"), "spike_factor": (2.0, 4.0), "generators": (1, 2)}
    named = {name: Axis(name=find_field(name, load), values=values) for name, values in wanted.items()}
    found = [(one.load.profile, one.load.shape.spike_factor, one.load.generators) for one in grid(None, load, named)]
    assert found == list(itertools.product(*wanted.values()))


def test_without_an_axis_there_is_one_point():
    assert grid(NOOP, CLOSED, {}) == (Point(settings=NOOP, load=CLOSED, varied={}),)


def test_varied_values_keep_the_name_that_the_user_wrote():
    points = grid(NOOP, CLOSED, {"server.workers": Axis(name="server.workers", values=(3,))})
    assert (points[0].varied, points[0].settings.workers) == ({"server.workers": 3}, 3)


def test_a_value_out_of_range_is_refused_before_anything_is_measured():
    with pytest.raises(ConfigError, match=r"^workers is 0; it takes a whole number from 1 to 1024$"):
        grid(NOOP, CLOSED, axes(workers=(1, 0)))
    with pytest.raises(ConfigError, match=r"^concurrency is 20000; it takes a whole number from 1 to 10000$"):
        grid(NOOP, CLOSED, axes(concurrency=(20_000,)))


def test_settings_that_contradict_each_other_are_refused():
    with pytest.raises(ConfigError, match=r"^batch.max_size is 4 with topology = carry"):
        grid(NOOP, CLOSED, axes(topology=("carry",), max_size=(1, 4)))


@pytest.mark.parametrize(
    ("values", "problem"),
    [((1, 2, 1), "1 twice"), ((), "no value"), (("a", "a"), "a twice"), ((False, False), "False twice")],
)
def test_an_axis_names_each_value_once(values, problem):
    with pytest.raises(ConfigError, match=f"^the values to vary load.any over name {problem}; give each once"):
        Axis(name="load.any", values=values)


def test_the_settings_of_a_foreign_service_cannot_be_varied_but_its_load_can():
    assert grid(None, CLOSED, axes(concurrency=(1, 2)))[1].load.concurrency == 2
    with pytest.raises(
        ConfigError, match=r"^workers cannot be varied: the service was not launched by perfkit; vary the load$"
    ):
        grid(None, CLOSED, axes(workers=(1, 2)))


@given(count=st.integers(1, 30), rounds=st.integers(1, 5), seed=st.integers(0, 2**32))
def test_each_round_holds_every_point_once_in_an_order_that_the_seed_decides(count, rounds, seed):
    points = grid(NOOP, CLOSED, axes(workers=tuple(range(1, count + 1))))
    order = plan(points, rounds, seed).order
    assert [sorted(indices) for indices in order] == [list(range(count))] * rounds
    assert order == plan(points, rounds, seed).order


def test_rounds_and_seeds_have_orders_of_their_own():
    points = grid(NOOP, CLOSED, axes(workers=tuple(range(1, 21))))
    first, second = plan(points).order
    assert first != second
    assert plan(points, seed=1).order != [first, second]


def test_a_plan_as_json_says_all_that_a_resumed_scan_must_have_in_common():
    points = grid(NOOP, CLOSED, axes(workers=(1, 2)))
    assert plan(points, rounds=1).to_json() == {
        "points": [
            {
                "settings": fields.to_nested(point.settings),
                "load": {"loop": "closed", **fields.to_nested(CLOSED)},
                "varied": {"workers": point.settings.workers},
            }
            for point in points
        ],
        "seconds": 1.0,
        "rounds": 1,
        "seed": 0,
        "order": plan(points, rounds=1).order,
    }


@pytest.mark.parametrize("seconds", [0, -1, math.nan, math.inf])
def test_a_scan_of_no_time_is_refused(seconds):
    with pytest.raises(ConfigError, match=f"^seconds is {seconds:g}; it takes a number above 0$"):
        ScanPlan(points=grid(NOOP, CLOSED, {}), seconds=seconds, rounds=1, seed=0)


def test_a_scan_of_no_round_is_refused():
    with pytest.raises(ConfigError, match=r"^rounds is 0; it takes a whole number, 1 or more$"):
        plan(grid(NOOP, CLOSED, {}), rounds=0)
