"""Do tables survive the way to Parquet and back, whatever they hold?"""

from __future__ import annotations

import io
from pathlib import Path

import pandas
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from perfkit.errors import ArchiveError
from perfkit.measuring.archive import tables
from perfkit.measuring.archive.format import BATCHES, REQUESTS, SERIES, TABLES

WHERE = Path("run-1/requests.parquet")
INTEGERS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = {
    "integer": INTEGERS,
    "number": st.floats(allow_nan=False),
    "text": TEXTS,
}
DTYPES = {"integer": "Int64", "number": "float64", "text": "str"}


def through_parquet(name, frame):
    file = io.BytesIO()
    tables.write_table(tables.to_arrow(name, frame), file)
    return tables.read_table(file.getvalue(), WHERE)


def column(table, name, rows, draw):
    values = VALUES[table.columns[name]]
    values = values if name in table.keys else st.none() | values
    drawn = draw(st.lists(values, min_size=rows, max_size=rows))
    return pandas.Series(drawn, dtype=DTYPES[table.columns[name]])


@st.composite
def frames(draw, table):
    rows = draw(st.integers(0, 3))
    frame = pandas.DataFrame({name: column(table, name, rows, draw) for name in table.columns})
    extra = draw(st.lists(st.none() | INTEGERS, min_size=rows, max_size=rows))
    return frame.assign(extra=pandas.Series(extra, dtype="Int64"))


@pytest.mark.parametrize("table", [BATCHES, SERIES], ids=lambda table: table.name)
@settings(max_examples=15)
@given(data=st.data())
def test_any_table_comes_back_equal_with_its_extra_columns(table, data):
    frame = data.draw(frames(table))
    pandas.testing.assert_frame_equal(through_parquet(table.name, frame), frame)


@settings(max_examples=8)
@given(frame=frames(REQUESTS))
def test_any_requests_table_comes_back_equal(frame):
    pandas.testing.assert_frame_equal(through_parquet("requests", frame), frame)


def test_columns_that_were_not_recorded_come_back_absent_and_in_order():
    frame = pandas.DataFrame({"end_state": ["ok"], "request_id": [1], "note": ["x"]})
    back = through_parquet("requests", frame)
    assert list(back.columns) == [*REQUESTS.columns, "note"]
    assert back.dropna(axis="columns").to_dict("records") == [{"request_id": 1, "end_state": "ok", "note": "x"}]


def test_integers_that_a_join_turned_into_floats_come_back_as_integers():
    frame = pandas.DataFrame({"request_id": [1, 2], "end_state": ["ok", "ok"], "sent_ns": [5.0, None]})
    back = through_parquet("requests", frame)
    assert back["sent_ns"].dtype == "Int64"
    assert back["sent_ns"].to_list() == [5, pandas.NA]


@pytest.mark.parametrize("values", [[1.5], ["soon"], [[1]], [{}]])
def test_a_column_of_the_wrong_kind_is_named(values):
    frame = pandas.DataFrame({"request_id": [1], "end_state": ["ok"], "sent_ns": values})
    with pytest.raises(ArchiveError, match="column sent_ns of table requests cannot be saved as integer"):
        tables.to_arrow("requests", frame)


def test_a_missing_key_column_or_value_is_named():
    with pytest.raises(ArchiveError, match="table requests came without request_id"):
        tables.to_arrow("requests", pandas.DataFrame({"end_state": ["ok"]}))
    with pytest.raises(ArchiveError, match="column batch_id of table batches lacks 1 values"):
        tables.to_arrow("batches", pandas.DataFrame({"batch_id": [1, None]}))


def test_a_table_that_no_run_has_is_refused():
    with pytest.raises(ArchiveError, match="no table 'users'; it has requests, batches, series"):
        tables.to_arrow("users", pandas.DataFrame())


def test_bytes_that_are_no_parquet_are_refused_by_name():
    whole = pyarrow.BufferOutputStream()
    parquet.write_table(pyarrow.table({"a": [1, 2, 3]}), whole)
    data = whole.getvalue().to_pybytes()
    for broken in (b"", b"PAR1", data[:-5], data[20:]):
        with pytest.raises(ArchiveError, match=r"requests\.parquet is no whole Parquet file"):
            tables.read_table(broken, WHERE)


def test_a_table_larger_than_any_run_writes_is_refused_before_it_is_unpacked(monkeypatch):
    sink = pyarrow.BufferOutputStream()
    parquet.write_table(pyarrow.table({"a": [1] * 50, "b": [1] * 50}), sink)
    data = sink.getvalue().to_pybytes()
    monkeypatch.setattr(tables, "MAX_CELLS", 100)
    assert len(tables.read_table(data, WHERE)) == 50
    monkeypatch.setattr(tables, "MAX_CELLS", 99)
    with pytest.raises(ArchiveError, match="claims 100 cells, at most 99 are read"):
        tables.read_table(data, WHERE)


def test_every_table_writes_its_keys_among_its_columns():
    assert all(set(table.keys) <= set(table.columns) for table in TABLES.values())
    assert all(name == table.name for name, table in TABLES.items())


def test_the_size_asked_for_is_the_size_written():
    arrow, file = tables.to_arrow("batches", pandas.DataFrame({"batch_id": range(1000), "size": 8})), io.BytesIO()
    tables.write_table(arrow, file)
    assert tables.needed_bytes({"batches": arrow}) == len(file.getvalue())


def test_extra_columns_of_any_plain_kind_are_kept():
    extra = pandas.DataFrame(
        {
            "batch_id": [1, 2],
            "small": pandas.array([1, None], dtype="UInt8"),
            "share": [0.5, None],
            "lane": pandas.Categorical(["slow", None]),
            "is_padded": [True, False],
            "members": [[1, 2], []],
        }
    )
    back = through_parquet("batches", extra)[list(extra.columns)]
    assert back["batch_id"].dtype == "Int64"
    assert back["small"].dtype == "UInt8"
    assert [list(row) for row in back["members"]] == [[1, 2], []]
    assert back["share"].equals(extra["share"])
    assert back["lane"].astype("str").equals(extra["lane"].astype("str"))
    assert back["is_padded"].to_list() == [True, False]


def test_the_files_are_plain_parquet_with_the_types_that_other_tools_expect():
    file = io.BytesIO()
    tables.write_table(tables.to_arrow("series", pandas.DataFrame({"time_ns": [1], "source": "s", "name": "n"})), file)
    schema = parquet.read_schema(io.BytesIO(file.getvalue()))
    assert {field.name: str(field.type) for field in schema} == {
        "time_ns": "int64",
        "source": "string",
        "name": "string",
        "unit": "string",
        "value": "double",
    }
