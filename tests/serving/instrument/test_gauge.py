"""Does the gauge integrate what it counts, also when an arrival is reported late?"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from perfkit.serving.instrument.gauge import GaugeReading, InFlightGauge


def test_the_area_is_the_number_in_flight_times_how_long_it_was():
    gauge = InFlightGauge(now_ns=100)
    gauge.add(1, 110)
    gauge.add(1, 130)
    gauge.add(-1, 135)
    assert gauge.read(145) == GaugeReading(time_ns=145, in_flight=1, area_ns=1 * 20 + 2 * 5 + 1 * 10)


def test_reading_changes_nothing():
    gauge = InFlightGauge(now_ns=0)
    gauge.add(2, 0)
    assert [gauge.read(5), gauge.read(5), gauge.read(7)] == [
        GaugeReading(time_ns=5, in_flight=2, area_ns=10),
        GaugeReading(time_ns=5, in_flight=2, area_ns=10),
        GaugeReading(time_ns=7, in_flight=2, area_ns=14),
    ]


@given(st.lists(st.tuples(st.integers(0, 1_000), st.integers(0, 1_000), st.integers(0, 1_000)), max_size=30))
def test_when_all_have_left_the_area_is_the_sum_of_their_stays(stays):
    """Each request arrives, is reported some time later with its true arrival, and leaves: Little's identity."""
    gauge = InFlightGauge(now_ns=0)
    events = []
    for arrived_ns, reported_after_ns, stayed_ns in stays:
        events.append((arrived_ns + reported_after_ns, 1, arrived_ns))
        left_ns = arrived_ns + reported_after_ns + stayed_ns
        events.append((left_ns, -1, left_ns))
    for _, change, at_ns in sorted(events, key=lambda event: (event[0], -event[1])):
        gauge.add(change, at_ns)
    total_ns = sum(reported_after_ns + stayed_ns for _, reported_after_ns, stayed_ns in stays)
    assert gauge.read(9_999) == GaugeReading(time_ns=9_999, in_flight=0, area_ns=total_ns)
