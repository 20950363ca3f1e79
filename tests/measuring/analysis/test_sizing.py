"""Do the formulas give the articles' own numbers, and do they stand beside the right figures of a run?"""

import pytest

from perfkit.errors import ConfigError
from perfkit.measuring.analysis import sizing_formulas as formulas
from perfkit.measuring.analysis.sizing import Demand, size_demand, size_point
from perfkit.measuring.analysis.summary import summarise


def test_the_articles_numbers_come_out():
    assert formulas.in_flight(300, 0.15) == pytest.approx(45)
    assert formulas.client_threads(300, 0.15) == 59  # the article rounds to 60
    assert formulas.user_rate(100, 0.2) == 500
    assert formulas.pool_size(300, 0.15) == 68  # the article takes 64
    assert formulas.queue_depth(200, 0.1) == 20
    assert formulas.blocking_threads(8, 0.005, 0.020) == 10.0
    assert (formulas.compute_threads(8), formulas.doubled_threads(8), formulas.io_threads(8)) == (9, 16, 17)
    assert formulas.pool_ceiling(8) == (80, 160)
    assert formulas.soak_levels(100) == pytest.approx((70, 80))


@pytest.mark.parametrize(
    ("ask", "complaint"),
    [
        (lambda: formulas.in_flight(-1, 1), "rate_rps is -1; it takes a number, 0 or more"),
        (lambda: formulas.in_flight(1, float("nan")), "time_s is nan"),
        (lambda: formulas.user_rate(5, 0.0), "time_s and think_s are both 0"),
        (lambda: formulas.compute_threads(0), "cores is 0; it takes a whole number, 1 or more"),
        (lambda: formulas.blocking_threads(2, 1.0, 0.0), "compute_s is 0"),
    ],
)
def test_what_no_formula_takes_is_refused(ask, complaint):
    with pytest.raises(ConfigError, match=complaint):
        ask()


def by_name(found):
    return {one.formula.name: one for one in found}


def test_a_demand_gets_the_formulas_alone():
    found = by_name(size_demand(Demand(rate_rps=300, time_s=0.15, wait_s=0.1, cores=16)))
    assert {name: one.value for name, one in found.items()} == {
        "in flight": pytest.approx(45),
        "client threads": 59,
        "pool size": 68,
        "queue depth": 30,
        "threads, computing": 17,
        "threads, doubled": 32,
        "threads, I/O": 33,
        "most threads": 320,
    }
    assert all(one.measured is None for one in found.values())


def test_formulas_agree_with_the_gauge_and_the_users_of_a_closed_loop(healthy_run):
    found = by_name(size_point(summarise(healthy_run).to_json(), cores=2))
    flight = found["in flight"]
    assert flight.value == pytest.approx(flight.measured, rel=0.05)
    assert found["rate of the users"].value == pytest.approx(found["rate of the users"].measured, rel=0.05)
    assert found["queue depth"].value == pytest.approx(found["queue depth"].measured, abs=1.0)
    assert found["client threads"].measured == 16
    assert found["client threads"].value == pytest.approx(16 * 1.3, abs=1.5)
    assert found["threads, computing"].to_json()["of_measured_ratio"] == 3.0  # 2 cores, one worker


def test_a_service_without_a_ledger_has_no_made_up_numbers(healthy_run):
    point = summarise(healthy_run).to_json()
    foreign = point | {
        "stages_s": dict.fromkeys(point["stages_s"]) | {"send": 1e-5},
        "settings": {},
        "in_flight_mean": None,
        "queue_depth_mean": None,
    }
    found = by_name(size_point(foreign, cores=4))
    assert [found[name].value for name in ("in flight", "client threads", "queue depth", "pool size")] == [None] * 4
    assert found["threads, blocking"].value is None
    assert found["threads, doubled"].value == 8


def test_every_formula_names_its_source():
    found = size_demand(Demand(rate_rps=1, time_s=1, wait_s=1, cores=1))
    assert all("seed" in one.formula.source and one.formula.text for one in found)
