"""Do the tables leave the archive with every value, in forms that other tools open as they are?"""

from __future__ import annotations

import json

import duckdb
import pandas
import pytest

from perfkit.errors import ArchiveError, ConfigError
from perfkit.measuring.archive.entries import read_entry
from perfkit.measuring.exporting.subject import subject_of
from perfkit.measuring.exporting.tables import write_csv, write_json, write_parquet


def test_pandas_opens_the_archive_as_it_is(tiny):
    for name in tiny.tables:
        plain = pandas.read_parquet(tiny.path / f"{name}.parquet")
        ours = tiny.table(name)
        assert list(plain.columns) == list(ours.columns)
        pandas.testing.assert_frame_equal(plain.astype(ours.dtypes), ours)


def test_duckdb_opens_the_archive_as_it_is(tiny, real):
    requests = f"'{real.path}/requests.parquet'"
    ended = duckdb.sql(f"SELECT end_state, count(*) FROM {requests} GROUP BY 1").fetchall()
    ours = real.table("requests")
    assert dict(ended) == ours["end_state"].value_counts().to_dict()
    ((median_ns,),) = duckdb.sql(f"SELECT quantile_disc(received_ns - scheduled_ns, 0.5) FROM {requests}").fetchall()
    latency_ns = (ours["received_ns"] - ours["scheduled_ns"]).dropna().sort_values()
    assert median_ns in set(latency_ns)
    joined = duckdb.sql(
        f"SELECT r.request_id, b.size FROM '{tiny.path}/requests.parquet' r "
        f"JOIN '{tiny.path}/batches.parquet' b USING (round, batch_id) ORDER BY 1"
    ).fetchall()
    assert joined == [(0, 2), (1, 2), (100, 2), (101, 2)]
    series = duckdb.sql(f"SELECT source, count(*) FROM '{tiny.path}/series.parquet' GROUP BY 1 ORDER BY 1").fetchall()
    assert series == [("host", 2), ("process", 2), ("thread:11:worker-0", 2)]


def test_duckdb_opens_all_runs_of_an_archive_at_once(tiny, tiny_scan, tmp_path):
    found = duckdb.sql(f"SELECT count(*) FROM '{tmp_path}/**/requests.parquet'").fetchall()
    assert found == [(12,)]


def test_csv_holds_every_value_and_absent_ones_are_empty(tiny, tmp_path):
    files = write_csv(subject_of(read_entry(tiny.path)), tmp_path / "out")
    assert [file.name for file in files] == ["batches.csv", "points.csv", "requests.csv", "series.csv"]
    for name in tiny.tables:
        ours = tiny.table(name)
        # A text that is empty and one that is absent look alike in CSV.
        text = {column: "" for column in ours.columns if not pandas.api.types.is_numeric_dtype(ours[column].dtype)}
        back = pandas.read_csv(tmp_path / "out" / f"{name}.csv", dtype=ours.dtypes.to_dict())
        pandas.testing.assert_frame_equal(back.fillna(text), ours.fillna(text))
    points = pandas.read_csv(tmp_path / "out" / "points.csv")
    assert points.loc[0, ["throughput_rps.value", "grade"]].to_list() == [2.0, "short"]


def test_a_scan_is_one_table_each_with_the_point_in_front(tiny_scan, tmp_path):
    write_parquet(subject_of(tiny_scan), tmp_path / "out")
    requests = pandas.read_parquet(tmp_path / "out" / "requests.parquet")
    assert requests.columns[0] == "point"
    assert requests.groupby("point").size().to_dict() == {0: 3, 1: 3}
    points = pandas.read_parquet(tmp_path / "out" / "points.parquet")
    assert points[["point", "varied.workers", "grade"]].to_dict("list") == {
        "point": [0, 1],
        "varied.workers": [1, 2],
        "grade": ["sound", "void"],
    }
    write_parquet(subject_of(tiny_scan, 1), tmp_path / "second")
    assert set(pandas.read_parquet(tmp_path / "second" / "requests.parquet")["point"]) == {1}


def test_json_holds_manifest_points_and_tables_by_column(tiny, tmp_path):
    write_json(subject_of(read_entry(tiny.path)), tmp_path / "run.json")
    document = json.loads((tmp_path / "run.json").read_text())
    assert list(document)[:2] == ["schema", "simulated"]
    assert (document["run"]["id"], document["manifests"][0]["notes"]) == (
        "20250101-000000-abcd",
        ["planted: no collector ran"],
    )
    requests = tiny.table("requests")
    assert document["tables"]["requests"]["scheduled_ns"] == requests["scheduled_ns"].to_list()
    assert document["tables"]["requests"]["batch_id"][2] is None


def test_nothing_that_is_there_is_written_over(tiny, tmp_path):
    (tmp_path / "out").mkdir()
    with pytest.raises(ArchiveError, match="never overwritten"):
        write_csv(subject_of(read_entry(tiny.path)), tmp_path / "out")


def test_only_a_point_that_there_is_can_be_named(tiny, tiny_scan):
    with pytest.raises(ConfigError, match="has points 0 to 1"):
        subject_of(tiny_scan, 2)
    with pytest.raises(ConfigError, match="has no points"):
        subject_of(read_entry(tiny.path), 0)
    with pytest.raises(ConfigError, match="has 2 points; name one with --point"):
        subject_of(tiny_scan).one  # noqa: B018
