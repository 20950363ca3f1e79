"""Does a series survive a kill, and come back as it was written?"""

import math
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfkit.errors import ArchiveError
from perfkit.measuring.collectors.collector import SeriesRow
from perfkit.measuring.collectors.series import HEADER, Reading, SeriesWriter, read_series

names = st.text(alphabet=st.characters(categories=["L", "N", "P"]), min_size=1, max_size=8)
readings = st.builds(Reading, names, names, names, st.floats(allow_nan=False))
instants = st.lists(st.tuples(st.integers(0, 2**63 - 1), st.lists(readings, max_size=5)), max_size=5)


@given(instants)
def test_what_is_written_is_read(instants):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "system.series"
        with SeriesWriter(path) as writer:
            for time_ns, values in instants:
                writer.append(time_ns, values)
        assert read_series(path) == [SeriesRow(time_ns, *value) for time_ns, values in instants for value in values]


def test_a_torn_tail_costs_at_most_the_last_line(tmp_path):
    path = tmp_path / "system.series"
    with SeriesWriter(path) as writer:
        writer.append(10, [Reading("process", "rss", "bytes", 1.5)])
        writer.append(20, [Reading("process", "rss", "bytes", 123456.0), Reading("process", "threads", "count", 4.0)])
    whole = path.read_bytes()
    rows = read_series(path)
    for length in range(len(HEADER) + 1, len(whole)):
        path.write_bytes(whole[:length])
        found = read_series(path)
        assert found == rows[: len(found)]
    path.write_bytes(whole[:-1])
    assert read_series(path) == rows[:-1]


def test_a_thread_named_with_tabs_and_line_ends_stays_one_series(tmp_path):
    path = tmp_path / "system.series"
    with SeriesWriter(path) as writer:
        writer.append(1, [Reading("thread:7:a\tb\nc", "cpu", "s", math.inf)])
    assert read_series(path) == [SeriesRow(1, "thread:7:a b c", "cpu", "s", math.inf)]


def test_a_missing_or_foreign_file_is_named(tmp_path):
    with pytest.raises(ArchiveError, match=r"cannot read series file .*nowhere"):
        read_series(tmp_path / "nowhere")
    (tmp_path / "other").write_text("time,value\n")
    with pytest.raises(ArchiveError, match="does not start with 'perfkit-series 1'"):
        read_series(tmp_path / "other")
