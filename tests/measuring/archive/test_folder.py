"""Does a saved run come back as it was, and is a damaged or hostile one refused by name?"""

from __future__ import annotations

import dataclasses
import json
import os

import pandas
import pytest

from perfkit.errors import ArchiveError
from perfkit.measuring.archive.folder import contents_of, load_run, save_run, verify_run
from perfkit.measuring.archive.format import MANIFEST_NAME


def edit(run, **changes):
    """Change entries of a saved manifest as a stranger would."""
    where = run / MANIFEST_NAME
    where.write_text(json.dumps(json.loads(where.read_text()) | changes))


def assert_same_contents(one, other):
    assert one.manifest == other.manifest
    assert list(one.tables) == list(other.tables)
    for name, frame in one.tables.items():
        pandas.testing.assert_frame_equal(frame, other.tables[name])
    assert one.stacks == other.stacks


def test_a_saved_run_comes_back_whole(tmp_path, planted):
    contents = planted()
    run = load_run(save_run(tmp_path / "new" / "run-1", contents))
    assert_same_contents(contents_of(run), contents)
    assert (run.tables, run.stacks, run.logs) == (("requests", "batches", "series"), ("default",), ("server.log",))
    assert run.log("server.log") == "planted example: ready\n"
    assert verify_run(run.path) == []


def test_the_folder_holds_exactly_the_promised_files_and_the_manifest_names_them(tmp_path, planted):
    run = save_run(tmp_path / "run-1", planted())
    found = sorted(str(path.relative_to(run)) for path in run.rglob("*") if path.is_file())
    document = json.loads((run / MANIFEST_NAME).read_text())
    tables = ["batches.parquet", "requests.parquet", "series.parquet"]
    assert found == [tables[0], "logs/server.log", tables[1], "run.json", tables[2], "stacks/default.json"]
    assert sorted(document["hashes"]) == sorted(set(found) - {MANIFEST_NAME})
    assert list(document)[:2] == ["schema", "simulated"]
    assert os.listdir(tmp_path) == ["run-1"]


def test_stacks_and_logs_given_as_files_are_copied(tmp_path, planted):
    stacks, log = tmp_path / "recorded.json", tmp_path / "written.log"
    stacks.write_text('{"schema": 1, "mode": "gil"}')
    log.write_bytes(b"caf\xc3\xa9 \xff")
    contents = dataclasses.replace(planted(), stacks={"gil": stacks}, logs={"load.log": log})
    run = load_run(save_run(tmp_path / "run-1", contents))
    assert run.stack("gil") == {"schema": 1, "mode": "gil"}
    assert run.log("load.log") == "café \\xff"


def test_some_columns_are_those_of_the_table_with_plain_integers_where_none_is_absent(tmp_path, planted):
    run = load_run(save_run(tmp_path / "run-1", planted()))
    whole, some = run.table("requests"), run.columns("requests", ("batch_id", "request_id", "end_state", "nothing"))
    assert {name: str(kind) for name, kind in some.dtypes.items()} == {
        "request_id": "int64",
        "end_state": "category",
        "batch_id": "Int64",
    }
    for name in some.columns:
        assert some[name].astype(object).equals(whole[name].astype(object))
    with pytest.raises(ArchiveError, match=r"holds no absent\.parquet"):
        run.columns("absent.parquet", ("request_id",))


def test_a_log_that_is_gone_stops_the_saving_and_leaves_nothing(tmp_path, planted):
    contents = dataclasses.replace(planted(), logs={"load.log": tmp_path / "gone.log"})
    with pytest.raises(ArchiveError, match=r"gone\.log was to be kept"):
        save_run(tmp_path / "run-1", contents)
    assert os.listdir(tmp_path) == []


def test_a_run_is_never_overwritten(tmp_path, planted):
    run = save_run(tmp_path / "run-1", planted())
    before = (run / MANIFEST_NAME).read_bytes()
    with pytest.raises(ArchiveError, match="never overwritten"):
        save_run(run, planted(rounds=1))
    assert (run / MANIFEST_NAME).read_bytes() == before
    assert os.listdir(tmp_path) == ["run-1"]


@pytest.mark.parametrize("name", ["..", ".hidden", "a b", "x" * 200])
def test_a_name_that_is_no_plain_name_is_refused(tmp_path, planted, name):
    with pytest.raises(ArchiveError, match="not usable"):
        save_run(tmp_path / name, planted())


@pytest.mark.parametrize("stacks", ["../outside", "a/b", ".hidden", ""])
def test_a_member_that_would_leave_the_folder_is_refused(tmp_path, planted, stacks):
    with pytest.raises(ArchiveError, match="cannot hold a file"):
        save_run(tmp_path / "run-1", dataclasses.replace(planted(), stacks={stacks: {}}))
    assert os.listdir(tmp_path) == []


def test_a_manifest_that_could_not_be_read_again_is_not_saved(tmp_path, planted):
    contents = planted()
    for changes, named in (({"created": "yesterday"}, "created"), ({"settings": None}, "settings")):
        manifest = dataclasses.replace(contents.manifest, **changes)
        with pytest.raises(ArchiveError, match=named):
            save_run(tmp_path / "run-1", dataclasses.replace(contents, manifest=manifest))
    assert os.listdir(tmp_path) == []


def test_figures_that_are_no_numbers_are_saved_as_absent(tmp_path, planted):
    contents = planted()
    manifest = dataclasses.replace(contents.manifest, environment={"load": float("nan"), "limit": float("inf")})
    run = load_run(save_run(tmp_path / "run-1", dataclasses.replace(contents, manifest=manifest)))
    assert run.manifest.environment == {"load": None, "limit": None}


def test_entries_of_a_newer_writer_are_kept(tmp_path, planted):
    run = save_run(tmp_path / "run-1", planted())
    edit(run, weather={"rain": True})
    assert load_run(run).manifest.further == {"weather": {"rain": True}}
    copy = save_run(tmp_path / "run-2", contents_of(load_run(run)))
    assert load_run(copy).manifest == load_run(run).manifest


def test_an_absent_table_is_an_error_that_names_what_is_there(tmp_path, planted):
    contents = planted()
    tables = {name: frame for name, frame in contents.tables.items() if name != "batches"}
    run = load_run(save_run(tmp_path / "run-1", dataclasses.replace(contents, tables=tables)))
    assert run.tables == ("requests", "series")
    with pytest.raises(ArchiveError, match=r"holds no batches\.parquet; it holds .*requests\.parquet"):
        run.table("batches")


def test_every_kind_of_damage_is_found_and_named(tmp_path, planted):
    run = save_run(tmp_path / "run-1", planted())
    requests = (run / "requests.parquet").read_bytes()
    (run / "requests.parquet").write_bytes(requests[:-1] + b"X")
    (run / "logs" / "server.log").unlink()
    (run / "stray.txt").write_text("")
    problems = verify_run(run)
    assert [problem.split(str(run) + "/")[1].split(" ")[0].rstrip(":") for problem in problems] == [
        "logs/server.log",
        "requests.parquet",
        "stray.txt",
    ]
    with pytest.raises(ArchiveError, match="hash differs"):
        load_run(run).table("requests")


def test_links_are_not_followed(tmp_path, planted):
    run = save_run(tmp_path / "run-1", planted())
    secret = tmp_path / "secret"
    secret.write_text("secret")
    (run / "logs" / "server.log").unlink()
    (run / "logs" / "server.log").symlink_to(secret)
    (run / "stacks").rename(tmp_path / "elsewhere")
    (run / "stacks").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ArchiveError, match="is a link"):
        load_run(run).log("server.log")
    with pytest.raises(ArchiveError, match="is a link"):
        load_run(run).stack("default")
    (run / MANIFEST_NAME).rename(tmp_path / "moved.json")
    (run / MANIFEST_NAME).symlink_to(tmp_path / "moved.json")
    with pytest.raises(ArchiveError, match=r"run\.json: it is a link"):
        load_run(run)


def test_a_pipe_in_place_of_a_file_does_not_block(tmp_path, planted):
    run = save_run(tmp_path / "run-1", planted())
    (run / "series.parquet").unlink()
    os.mkfifo(run / "series.parquet")
    with pytest.raises(ArchiveError, match="no regular file"):
        load_run(run).table("series")


FACTS = {"sha256": "0" * 64, "bytes": 1}


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"schema": 2}, "schema 2; this perfkit reads 1"),
        ({"schema": True}, "schema True"),
        ({"schema": None}, "schema None"),
        ({"id": 7}, "id is 7; a text"),
        ({"created": "soon"}, "created is 'soon'"),
        ({"simulated": 1}, "simulated is 1; true or false"),
        ({"settings": []}, "settings is .*; an object"),
        ({"certificate": "good"}, "certificate is 'good'; an object or null"),
        ({"rounds": [1]}, "rounds holds 1"),
        ({"notes": [{}]}, "notes holds {}"),
        ({"hashes": None}, "hashes is NoneType"),
        ({"hashes": {"../../etc/passwd": FACTS}}, "which no run has"),
        ({"hashes": {"/etc/passwd": FACTS}}, "which no run has"),
        ({"hashes": {"logs/../../x": FACTS}}, "which no run has"),
        ({"hashes": {"run.json": FACTS}}, "which no run has"),
        ({"hashes": {"series.parquet": {"sha256": "0" * 63, "bytes": 1}}}, "sha256 and bytes are needed"),
        ({"hashes": {"series.parquet": {"sha256": "0" * 64, "bytes": -1}}}, "sha256 and bytes are needed"),
        ({"hashes": {"series.parquet": 4}}, "sha256 and bytes are needed"),
    ],
)
def test_a_hostile_manifest_is_refused_by_name(tmp_path, planted, changes, named):
    run = save_run(tmp_path / "run-1", planted(rounds=1))
    edit(run, **changes)
    with pytest.raises(ArchiveError, match=named) as caught:
        load_run(run)
    assert str(run / MANIFEST_NAME) in str(caught.value)
    assert verify_run(run) == [str(caught.value)]


@pytest.mark.parametrize("text", [b"", b"{", b'{"schema": 1', b"[1]", b"\xff\xfe", b"[" * 100_000, b'{"schema": NaN}'])
def test_a_manifest_that_is_not_whole_json_is_refused_by_name(tmp_path, text):
    (tmp_path / MANIFEST_NAME).write_bytes(text)
    with pytest.raises(ArchiveError, match=r"run\.json"):
        load_run(tmp_path)


@pytest.mark.parametrize("name", ["id", "created", "simulated"])
def test_a_manifest_without_a_required_entry_is_refused(tmp_path, planted, name):
    run = save_run(tmp_path / "run-1", planted(rounds=1))
    document = json.loads((run / MANIFEST_NAME).read_text())
    del document[name]
    (run / MANIFEST_NAME).write_text(json.dumps(document))
    with pytest.raises(ArchiveError, match=f"lacks {name}"):
        load_run(run)


def test_a_folder_without_a_manifest_is_refused(tmp_path):
    with pytest.raises(ArchiveError, match=r"cannot read .*run\.json: No such file"):
        load_run(tmp_path)
