"""Do samples come back whole, while the file grows and after a writer was killed?"""

import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from perfkit.measuring.load.samples import FLUSH_EVERY_NS, ROW, ROWS_HELD, SAMPLE_COLUMNS, SampleWriter, read_samples

WIDTH = len(SAMPLE_COLUMNS)
INT64 = st.integers(-(2**63), 2**63 - 1)
MOST_GROWTH_KIB = 200 * 1024

MILLION_ROWS = """
import re, sys
from pathlib import Path
from perfkit.measuring.load.samples import ROW, SampleWriter

def peak_kib():
    # Not getrusage: its maximum starts at what the parent held, whatever is executed.
    return int(re.search("VmHWM:[^0-9]*([0-9]+)", Path("/proc/self/status").read_text())[1])

writer = SampleWriter(Path(sys.argv[1]))
before = peak_kib()
for number in range(1_000_000):
    writer.add(ROW.pack(number, 0, 10**15, 10**15, 10**15, 200, 1, 100, 100))
    if number % 1000 == 0:
        writer.flush_if_due(number)
writer.close()
print(peak_kib() - before)
"""


def rows_of(columns):
    return list(zip(*(columns[name].tolist() for name in SAMPLE_COLUMNS), strict=True))


@given(st.lists(st.tuples(*[INT64] * WIDTH), max_size=30))
def test_rows_come_back_as_they_were_added(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("samples") / "some.samples"
    writer = SampleWriter(path)
    for row in rows:
        writer.add(ROW.pack(*row))
    writer.close()
    assert rows_of(read_samples(path)) == rows


def test_a_torn_last_row_is_left_out_and_read_later(tmp_path):
    path = tmp_path / "torn.samples"
    first, second = tuple(range(WIDTH)), tuple(range(10, 10 + WIDTH))
    path.write_bytes(ROW.pack(*first) + ROW.pack(*second)[:30])
    assert rows_of(read_samples(path)) == [first]
    path.write_bytes(ROW.pack(*first) + ROW.pack(*second))
    assert rows_of(read_samples(path, first_row=1)) == [second]
    assert rows_of(read_samples(path, first_row=2)) == []


def test_rows_reach_the_file_when_they_are_many_or_a_quarter_of_a_second_old(tmp_path):
    path = tmp_path / "growing.samples"
    writer = SampleWriter(path)
    written = []
    for now_ns, count in [
        (FLUSH_EVERY_NS, 1),  # the first is due
        (FLUSH_EVERY_NS + 1, ROWS_HELD - 1),  # neither many nor old
        (FLUSH_EVERY_NS + 2, 1),  # many
        (2 * FLUSH_EVERY_NS + 1, 5),  # not old enough
        (2 * FLUSH_EVERY_NS + 2, 0),  # old
    ]:
        for _ in range(count):
            writer.add(ROW.pack(*[7] * WIDTH))
        writer.flush_if_due(now_ns)
        written.append(len(read_samples(path)["status"]))
    assert written == [1, 1, 1 + ROWS_HELD, 1 + ROWS_HELD, 6 + ROWS_HELD]
    writer.close()


def test_a_million_rows_grow_memory_by_less_than_the_limit(tmp_path):
    path = tmp_path / "million.samples"
    printed = subprocess.run(
        [sys.executable, "-c", MILLION_ROWS, str(path)], check=True, capture_output=True, text=True
    ).stdout
    assert path.stat().st_size == 1_000_000 * ROW.size
    assert int(printed) < MOST_GROWTH_KIB
