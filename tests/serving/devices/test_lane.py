"""Device instants are moved into the ledger's order, and how far is counted."""

from hypothesis import given
from hypothesis import strategies as st

from perfkit.serving.devices.lane import in_ledger_order


def test_instants_in_order_stay_as_they_are():
    assert in_ledger_order((0, 0, 12, 15, 0, 0), 10, 20) == ([0, 0, 12, 15, 0, 0], 0)


def test_an_instant_before_the_call_or_after_its_end_is_moved_inside_and_counted():
    assert in_ledger_order((7, 25), 10, 20) == ([10, 20], 8)


def test_an_instant_before_its_predecessor_is_moved_to_it_and_absent_ones_stay_absent():
    assert in_ledger_order((14, 0, 11), 10, 20) == ([14, 0, 14], 3)


@given(st.lists(st.integers(0, 100), max_size=6), st.integers(1, 100), st.integers(0, 100))
def test_present_instants_always_come_out_in_order_between_the_host_instants(measured, floor_ns, length_ns):
    ordered, moved_ns = in_ledger_order(tuple(measured), floor_ns, floor_ns + length_ns)
    present = [instant for instant in ordered if instant]
    assert present == sorted(present)
    assert all(floor_ns <= instant <= floor_ns + length_ns for instant in present)
    assert [instant == 0 for instant in ordered] == [instant == 0 for instant in measured]
    assert moved_ns == sum(abs(after - before) for before, after in zip(measured, ordered, strict=True))
