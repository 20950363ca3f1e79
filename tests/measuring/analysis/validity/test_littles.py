"""Little's law, the interactive law and the gauge."""

import dataclasses

import pandas as pd
import pytest

from perfkit.measuring.analysis.ledger import SERVER_INSTANTS
from perfkit.measuring.analysis.measured import measure_windows
from perfkit.measuring.analysis.validity.littles import check_gauge, check_interactive_law, check_little, little_figures


def with_areas(run, change):
    """The run with each gauge reading's integral passed through `change(place, area)`."""
    gauges = [reading | {"area_ns": change(place, reading["area_ns"])} for place, reading in enumerate(run.gauges)]
    return dataclasses.replace(run, gauges=gauges)


def lasting(run, each_ns):
    """The run with every request in the server for so long, and no other stamps."""
    blank = {f"{name}_ns": pd.array([pd.NA] * len(run.requests), dtype="Int64") for name in SERVER_INSTANTS}
    accepted = {"accepted_ns": run.requests["accepted_ns"], "replied_ns": run.requests["accepted_ns"] + each_ns}
    return dataclasses.replace(run, requests=run.requests.assign(**blank | accepted))


@pytest.mark.parametrize("name", ["healthy_run", "healthy_open_run"])
def test_a_healthy_run_obeys_the_laws(name, request):
    run = request.getfixturevalue(name)
    measured = measure_windows(run)
    assert check_gauge(run).passed is True
    assert check_little(run).passed is True
    assert check_little(run).figure < 1e-6
    assert check_interactive_law(run, measured).passed is (True if run.is_closed_loop else None)


def test_both_sides_of_little_are_the_mean_number_in_the_server(healthy_run):
    gauge, ledger, slack = little_figures(healthy_run)
    busy_ratio = 3.16 / 7.001  # three seconds and the drain of a span that runs from 1 ms before to 4 s after
    assert gauge == pytest.approx(ledger) == pytest.approx(16 * busy_ratio, rel=0.05)
    assert slack == 16 / len(healthy_run.requests)  # 16 users at the edges of the window


def test_two_clocks_lie_up_to_20_microseconds_a_request_apart(healthy_run):
    """What a service of a tenth of a millisecond needs, and one of ten never notices."""
    slacks = [little_figures(lasting(healthy_run, each_ns))[2] for each_ns in (100_000, 10_000_000)]
    assert slacks == [pytest.approx(0.2, rel=0.01), 16 / len(healthy_run.requests)]


def test_a_gauge_that_counts_three_percent_too_much_breaks_little(healthy_run):
    assert check_little(with_areas(healthy_run, lambda place, area: int(area * 1.03))).passed is False


def test_requests_missing_in_the_ledger_break_little(healthy_run):
    kept = healthy_run.requests[healthy_run.requests["request_id"] % 20 != 0]
    assert check_little(dataclasses.replace(healthy_run, requests=kept)).passed is False


def test_a_gauge_that_stands_still_is_stale_and_breaks_little(healthy_run):
    run = with_areas(healthy_run, lambda place, area: 5)
    assert check_gauge(run).passed is False
    assert (check_little(run).passed, check_little(run).figure) == (False, 1.0)


def test_a_gauge_that_runs_backwards_is_stale(healthy_run):
    assert check_gauge(with_areas(healthy_run, lambda place, area: -area)).passed is False


def test_a_reading_that_repeats_the_one_before_is_stale(healthy_run):
    first, last = healthy_run.gauges[:2]
    middle = last | {"time_ns": first["time_ns"] + 1_000_000_000, "in_flight": 16}
    later = middle | {"time_ns": first["time_ns"] + 2_000_000_000}
    run = dataclasses.replace(healthy_run, gauges=[first, middle, later, *healthy_run.gauges[1:]])
    assert check_gauge(run).passed is False


def test_a_wrong_number_of_users_breaks_the_interactive_law(healthy_run):
    run = dataclasses.replace(healthy_run, load=dict(healthy_run.load) | {"concurrency": 17})
    assert check_interactive_law(run, measure_windows(run)).passed is False


def test_users_that_dawdle_break_the_interactive_law(scenario):
    dawdling = scenario(seed=1, shape="normal", think_s=0.03, users=4).run()
    claimed = dataclasses.replace(dawdling, load=dict(dawdling.load) | {"think_time_s": 0.0})
    assert check_interactive_law(dawdling, measure_windows(dawdling)).passed is True
    assert check_interactive_law(claimed, measure_windows(claimed)).passed is False


def test_random_think_times_are_not_judged(healthy_run):
    load = dict(healthy_run.load) | {"think_time_s": 0.01, "think": "exponential"}
    run = dataclasses.replace(healthy_run, load=load)
    assert check_interactive_law(run, measure_windows(run)).passed is None


def test_a_service_without_a_gauge_is_not_judged(healthy_run):
    run = dataclasses.replace(healthy_run, gauges=[])
    assert (check_gauge(run).passed, check_little(run).passed) == (None, None)
