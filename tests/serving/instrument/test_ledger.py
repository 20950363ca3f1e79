"""Are rows kept whole and in order, and is what was lost counted?"""

from __future__ import annotations

import sys
import threading
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfkit.records import BATCH_INSTANTS, CLIENT_INSTANTS, INSTANTS
from perfkit.serving.instrument import columns
from perfkit.serving.instrument.ledger import Ledger, SharedLedger

COLUMNS = ("first", "second")
FIRST, SECOND = 1, 2


def write(ledger, value):
    row = ledger.open()
    ledger.cells[row + FIRST] = value
    ledger.cells[row + SECOND] = -value
    ledger.close(row)


def rows_of(ledger, since=0):
    cells, lost = ledger.read(since)
    assert len(cells) % ledger.width == 0
    return [tuple(cells[at : at + ledger.width]) for at in range(0, len(cells), ledger.width)], lost


def test_closed_rows_are_numbered_from_one_and_read_in_that_order():
    ledger = Ledger(COLUMNS, capacity=8)
    for value in (7, 8, 9):
        write(ledger, value)
    assert ledger.columns == ("number", "first", "second")
    assert rows_of(ledger) == ([(1, 7, -7), (2, 8, -8), (3, 9, -9)], 0)
    assert rows_of(ledger, since=2) == ([(3, 9, -9)], 0)
    assert rows_of(ledger, since=3) == ([], 0)


def test_an_open_row_is_not_read():
    ledger = Ledger(COLUMNS, capacity=8)
    open_row = ledger.open()
    ledger.cells[open_row + FIRST] = 1
    write(ledger, 2)
    assert rows_of(ledger) == ([(1, 2, -2)], 0)
    ledger.close(open_row)
    assert rows_of(ledger) == ([(1, 2, -2), (2, 1, 0)], 0)


def test_a_reader_that_comes_too_late_learns_how_many_rows_it_missed():
    ledger = Ledger(COLUMNS, capacity=4)
    for value in range(10):
        write(ledger, value)
    assert rows_of(ledger, since=1) == ([(7, 6, -6), (8, 7, -7), (9, 8, -8), (10, 9, -9)], 5)


def test_a_row_that_is_open_again_counts_as_lost():
    ledger = Ledger(COLUMNS, capacity=2)
    write(ledger, 1)
    write(ledger, 2)
    ledger.open()
    assert rows_of(ledger) == ([(2, 2, -2)], 1)


def test_a_row_is_blank_when_it_is_opened_again():
    ledger = Ledger(COLUMNS, capacity=1)
    write(ledger, 5)
    row = ledger.open()
    assert list(ledger.cells[row : row + ledger.width]) == [0, 0, 0]


def test_more_open_rows_than_the_capacity_are_no_error():
    ledger = Ledger(COLUMNS, capacity=2)
    rows = [ledger.open() for _ in range(5)]
    assert len(set(rows)) == 5
    for value, row in enumerate(rows):
        ledger.cells[row + FIRST] = value
        ledger.close(row)
    assert rows_of(ledger) == ([(4, 3, 0), (5, 4, 0)], 3)


def test_without_stamps_nothing_is_kept_and_time_is_absent():
    ledger = Ledger(COLUMNS, capacity=4, stamps=False)
    write(ledger, 1)
    assert (rows_of(ledger), ledger.closed, ledger.now_ns()) == (([], 0), 0, 0)


@given(st.lists(st.sampled_from(["open", "close", "close_newest"]), max_size=60), st.integers(1, 4))
def test_every_row_is_read_once_or_counted_as_lost(steps, capacity):
    ledger = Ledger(COLUMNS, capacity)
    opened, closed, value = deque(), [], 0
    for step in steps:
        if step == "open":
            value += 1
            row = ledger.open()
            ledger.cells[row + FIRST] = value
            opened.append((row, value))
        elif opened:
            row, of_row = opened.popleft() if step == "close" else opened.pop()
            ledger.close(row)
            closed.append(of_row)
    rows, lost = rows_of(ledger)
    assert len(rows) + lost == ledger.closed == len(closed)
    assert [row[:2] for row in rows] == [(number, closed[number - 1]) for number, _, _ in rows]
    assert [number for number, _, _ in rows] == sorted({number for number, _, _ in rows})


@pytest.mark.parametrize("kind", [Ledger, SharedLedger])
def test_a_reader_in_another_thread_sees_only_whole_rows(kind):
    ledger, done = kind(COLUMNS, capacity=16), threading.Event()

    def write_on():
        for value in range(1, 20_000):
            write(ledger, value)
        done.set()

    old = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        writer = threading.Thread(target=write_on)
        writer.start()
        since, read, lost = 0, 0, 0
        while not done.is_set() or since < ledger.closed:
            rows, newly_lost = rows_of(ledger, since)
            for number, first, second in rows:
                assert (first, second) == (number, -number)
            read, lost = read + len(rows), lost + newly_lost
            since += len(rows) + newly_lost
        writer.join()
    finally:
        sys.setswitchinterval(old)
    assert read + lost == 19_999
    assert read > 0


def test_several_threads_may_share_a_shared_ledger():
    ledger = SharedLedger(COLUMNS, capacity=4_000)
    threads = [threading.Thread(target=lambda: [write(ledger, value) for value in range(500)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows, lost = rows_of(ledger)
    assert ([number for number, _, _ in rows], lost) == (list(range(1, 4_001)), 0)
    assert sorted(first for _, first, _ in rows) == sorted([value for value in range(500)] * 8)


def test_every_instant_of_the_server_has_a_column_in_exactly_one_of_the_two_books():
    of_requests = {name.removesuffix("_ns") for name in columns.REQUEST_COLUMNS if name.endswith("_ns")}
    of_batches = {name.removesuffix("_ns") for name in columns.BATCH_COLUMNS if name.endswith("_ns")}
    instants = set(INSTANTS) - set(CLIENT_INSTANTS)
    assert of_batches & set(INSTANTS) == set(BATCH_INSTANTS)
    assert of_requests & set(INSTANTS) == instants - set(BATCH_INSTANTS)


@pytest.mark.parametrize(
    ("prefix", "names"), [("", columns.REQUEST_COLUMNS), ("B_", columns.BATCH_COLUMNS)], ids=["requests", "batches"]
)
def test_each_constant_names_the_cell_that_its_name_says(prefix, names):
    constants = {
        name: value
        for name, value in vars(columns).items()
        if isinstance(value, int) and name.startswith("B_") == bool(prefix)
    }
    assert len(constants) > 9
    book = Ledger(names, capacity=1)
    short = {name.removesuffix("_ns"): index for index, name in enumerate(book.columns)}
    aliases = {"worker_free": "worker_free", "sealed": "batch_sealed"}
    for name, value in constants.items():
        plain = name.removeprefix(prefix).lower()
        assert short[aliases.get(plain, plain) if prefix else plain] == value, name
