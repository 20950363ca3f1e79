"""Does a scan keep every part, resume with the same plan, and refuse a second writer?"""

from __future__ import annotations

import dataclasses
import json
import os

import pytest

from perfkit.errors import ArchiveError, ConfigError
from perfkit.measuring.archive import scanfolder
from perfkit.measuring.archive.folder import load_run, verify_run
from perfkit.measuring.archive.scanfolder import create_scan, open_scan
from perfkit.measuring.archive.scanplan import Part
from perfkit.measuring.archive.storedscan import load_scan

ORDER = (Part(0, 1), Part(0, 0), Part(1, 0), Part(1, 1))
CERTIFICATES = [{"grade": "sound", "point": 0}, {"grade": "void", "point": 1}]


def measure(scan, planted, parts=None):
    for part in scan.pending_parts() if parts is None else parts:
        scan.save_part(part, planted(rounds=1, first_round=part.round))


def test_a_scan_from_start_to_finish_leaves_one_run_a_point_and_no_parts(tmp_path, planted, header):
    folder = tmp_path / "scan"
    with create_scan(folder, header) as scan:
        assert (scan.done_parts(), scan.pending_parts()) == ((), ORDER)
        measure(scan, planted)
        scan.finish(CERTIFICATES, {"knee": None})
        assert (scan.done_parts(), scan.pending_parts()) == (ORDER, ())
    assert sorted(os.listdir(folder)) == ["points", "scan.json", "scan.lock"]
    stored = load_scan(folder)
    expected = dataclasses.replace(header, status="finished", points=CERTIFICATES, summary={"knee": None})
    assert dataclasses.asdict(stored.header) == dataclasses.asdict(expected) | {
        "plan": json.loads(json.dumps(header.plan))
    }
    assert [stored.run(index).manifest.certificate for index in (0, 1)] == CERTIFICATES
    assert [verify_run(stored.run(index).path) for index in (0, 1)] == [[], []]


def test_pooled_rounds_are_appended_in_order_of_the_rounds(tmp_path, planted, header):
    with create_scan(tmp_path, header) as scan:
        measure(scan, planted)
        pooled, whole = scan.pooled(1), planted(rounds=2)
        assert pooled.manifest == dataclasses.replace(whole.manifest, certificate=None)
        for name, frame in whole.tables.items():
            assert pooled.tables[name].equals(frame)
        assert sorted(pooled.stacks) == ["r000-default", "r001-default"]
        assert sorted(pooled.logs) == ["r000-server.log", "r001-server.log"]
        scan.finish(CERTIFICATES)
        assert scan.pooled(1).tables["requests"].equals(whole.tables["requests"])


def test_an_unfinished_scan_can_be_read_while_it_is_written(tmp_path, planted, header):
    with create_scan(tmp_path, header) as scan:
        measure(scan, planted, [Part(0, 1)])
        stored = load_scan(tmp_path)
        assert stored.done_parts() == (Part(0, 1),)
        assert len(stored.pooled(1).tables["requests"]) == 3
        with pytest.raises(ArchiveError, match="holds nothing of point 0 yet"):
            stored.pooled(0)
        with pytest.raises(ArchiveError, match="is not finished"):
            stored.run(1)


def test_resuming_goes_on_after_the_parts_that_are_saved(tmp_path, planted, header):
    with create_scan(tmp_path, header) as scan:
        measure(scan, planted, ORDER[:2])
    torn = tmp_path / "rounds" / ".001-000.0badcafe.partial"
    torn.mkdir()
    (torn / "requests.parquet").write_bytes(b"half")
    (tmp_path / ".scan.json.0badcafe.partial").write_text("{")
    with open_scan(tmp_path, header.plan) as scan:
        assert scan.pending_parts() == ORDER[2:]
        assert scan.stored.header.resumes == 1
        assert sorted(os.listdir(tmp_path / "rounds")) == ["000-000", "000-001"]
        assert sorted(os.listdir(tmp_path)) == ["rounds", "scan.json", "scan.lock"]
        measure(scan, planted)
        scan.finish(CERTIFICATES)


def test_resuming_without_a_plan_takes_the_stored_one_bit_for_bit(tmp_path, header):
    create_scan(tmp_path, header).close()
    before = json.loads((tmp_path / "scan.json").read_bytes())["plan"]
    with open_scan(tmp_path, None) as scan:
        assert scan.stored.header.plan == before
    assert json.loads((tmp_path / "scan.json").read_bytes())["plan"] == before


def test_resuming_with_another_plan_names_the_difference_and_changes_nothing(tmp_path, header):
    create_scan(tmp_path, header).close()
    before = (tmp_path / "scan.json").read_bytes()
    points = [{"settings": {"model": "simulated:planted", "workers": workers}} for workers in (1, 4)]
    with pytest.raises(ConfigError, match=r"points\[1\]\.settings\.workers is 4, there 2\. Resume"):
        open_scan(tmp_path, header.plan | {"points": points})
    assert (tmp_path / "scan.json").read_bytes() == before
    open_scan(tmp_path, header.plan).close()


def test_a_second_writer_is_refused_until_the_first_has_closed(tmp_path, planted, header):
    scan = create_scan(tmp_path, header)
    for attempt in (lambda: open_scan(tmp_path, None), lambda: create_scan(tmp_path, header)):
        with pytest.raises(ArchiveError, match="another process writes the scan"):
            attempt()
    scan.close()
    scan.close()
    open_scan(tmp_path, None).close()


def test_a_scan_does_not_start_over_one_that_is_there(tmp_path, planted, header):
    create_scan(tmp_path, header).close()
    with pytest.raises(ConfigError, match=r"holds scan\.json already"):
        create_scan(tmp_path, header)
    with pytest.raises(ConfigError, match="no scan to resume"):
        open_scan(tmp_path / "other", None)


def test_a_part_is_saved_once_and_only_when_planned(tmp_path, planted, header):
    with create_scan(tmp_path, header) as scan:
        measure(scan, planted, ORDER[:1])
        with pytest.raises(ArchiveError, match="never overwritten"):
            measure(scan, planted, ORDER[:1])
        with pytest.raises(ArchiveError, match="not in the plan"):
            measure(scan, planted, [Part(2, 0)])


def test_finishing_waits_for_every_part_and_wants_a_certificate_for_each_point(tmp_path, planted, header):
    with create_scan(tmp_path, header) as scan:
        measure(scan, planted, ORDER[:3])
        with pytest.raises(ArchiveError, match="has 1 parts to measure"):
            scan.finish(CERTIFICATES)
        measure(scan, planted)
        with pytest.raises(ArchiveError, match="1 certificates came for 2 points"):
            scan.finish(CERTIFICATES[:1])
        scan.finish(CERTIFICATES)
        with pytest.raises(ArchiveError, match="is finished already"):
            scan.finish(CERTIFICATES)


@pytest.mark.parametrize("step", ["save_run", "_write", "durable.remove"])
def test_a_finish_that_fails_at_any_step_can_be_repeated(tmp_path, planted, header, monkeypatch, step):
    scan = create_scan(tmp_path, header)
    measure(scan, planted)
    target = scanfolder.durable if step == "durable.remove" else scanfolder
    name, calls = step.split(".")[-1], []
    real = getattr(target, name)

    def fail_the_second_time(*given):
        calls.append(given)
        if len(calls) == (1 if name == "_write" else 2):
            raise ArchiveError("the disk is full")
        return real(*given)

    monkeypatch.setattr(target, name, fail_the_second_time)
    with pytest.raises(ArchiveError, match="disk is full"):
        scan.finish(CERTIFICATES)
    monkeypatch.undo()
    scan.close()
    with open_scan(tmp_path, header.plan) as resumed:
        assert resumed.done_parts() == ORDER
        if not resumed.stored.is_finished:
            resumed.finish(CERTIFICATES)
    stored = load_scan(tmp_path)
    assert [len(stored.run(index).table("requests")) for index in (0, 1)] == [6, 6]
    assert sorted(os.listdir(tmp_path)) == ["points", "scan.json", "scan.lock"]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"schema": 9}, "schema 9"),
        ({"plan": {"points": [], "order": []}}, "points of the plan"),
        ({"plan": None}, "plan is None"),
        ({"status": "paused"}, "status is 'paused'"),
        ({"created": "soon"}, "created is 'soon'"),
        ({"resumes": "many"}, "resumes is 'many'"),
    ],
)
def test_a_damaged_scan_file_is_refused_by_name(tmp_path, header, changes, named):
    create_scan(tmp_path, header).close()
    where = tmp_path / "scan.json"
    where.write_text(json.dumps(json.loads(where.read_text()) | changes))
    with pytest.raises(ArchiveError, match=named) as caught:
        open_scan(tmp_path, None)
    assert str(where) in str(caught.value)


def test_a_scan_whose_parts_lie_behind_a_link_is_not_cleaned_up(tmp_path, header):
    folder, outside = tmp_path / "scan", tmp_path / "outside"
    create_scan(folder, header).close()
    outside.mkdir()
    (outside / ".mine.partial").write_text("")
    (folder / "rounds").symlink_to(outside)
    with pytest.raises(ArchiveError, match="is a link"):
        open_scan(folder, None)
    assert os.listdir(outside) == [".mine.partial"]


def test_a_damaged_part_is_named_when_its_point_is_pooled(tmp_path, planted, header):
    with create_scan(tmp_path, header) as scan:
        measure(scan, planted)
        where = load_run(tmp_path / "rounds" / "000-001").path / "series.parquet"
        where.write_bytes(where.read_bytes() + b"x")
        with pytest.raises(ArchiveError, match=r"000-001/series\.parquet is not what the run saved"):
            scan.finish(CERTIFICATES)
        assert scan.done_parts() == ORDER
