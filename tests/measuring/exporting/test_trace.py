"""Does a trace show every request, stage, batch and thread, in a form that its viewers and our importer read?"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path

import jsonschema
import pytest

from perfkit.errors import ArchiveError
from perfkit.measuring.analysis.ledger import stage_table
from perfkit.measuring.exporting.trace import REQUESTS_PID, SERVICE_PID, write_trace
from perfkit.measuring.importers.foreignrun import judged, save_import
from perfkit.measuring.importers.formats import read_file

NUMBER, WHOLE, TEXT = {"type": "number", "minimum": 0}, {"type": "integer", "minimum": 0}, {"type": "string"}
PLACED = {"name": TEXT, "cat": TEXT, "ts": NUMBER, "pid": WHOLE, "tid": WHOLE}


def event(phase, required, **properties):
    known = {"ph": {"const": phase}, **properties}
    return {"type": "object", "properties": known, "required": [*required, "ph"], "additionalProperties": False}


SCHEMA = {
    "type": "object",
    "required": ["traceEvents", "displayTimeUnit", "otherData"],
    "properties": {
        "displayTimeUnit": {"enum": ["ms", "ns"]},
        "traceEvents": {
            "type": "array",
            "items": {
                "oneOf": [
                    event("X", [*PLACED, "dur"], **PLACED, dur=NUMBER, args={"type": "object"}),
                    event("s", [*PLACED, "id"], **PLACED, id=WHOLE),
                    event("f", [*PLACED, "id", "bp"], **PLACED, id=WHOLE, bp={"const": "e"}),
                    event(
                        "M",
                        ["name", "pid", "tid", "args"],
                        name={"enum": ["process_name", "thread_name"]},
                        pid=WHOLE,
                        tid=WHOLE,
                        args={"type": "object", "required": ["name"], "properties": {"name": TEXT}},
                    ),
                ]
            },
        },
    },
}


def trace_of(run, tmp_path, **limit):
    path = tmp_path / "run.trace.json"
    shown = write_trace(run, path, **limit)
    return shown, json.loads(path.read_text()), path


def complete(document, pid=None):
    return [one for one in document["traceEvents"] if one["ph"] == "X" and pid in (None, one["pid"])]


def assert_nested(events):
    """On each line a span lies inside the one before or after it; viewers misplace all else."""
    lines = defaultdict(list)
    for one in events:
        lines[one["pid"], one["tid"]].append((one["ts"], -one["dur"]))
    for spans in lines.values():
        open_ends = []
        for start, negative in sorted(spans):
            end = start - negative
            while open_ends and open_ends[-1] <= start + 1e-3:
                open_ends.pop()
            assert not open_ends or end <= open_ends[-1] + 1e-3
            open_ends.append(end)


@pytest.mark.parametrize("which", ["tiny", "real"])
def test_every_event_has_the_form_that_viewers_read_and_lines_never_overlap(which, request, tmp_path):
    _, document, _ = trace_of(request.getfixturevalue(which), tmp_path, limit=200)
    jsonschema.validate(document, SCHEMA)
    assert_nested(complete(document))


def test_the_schema_and_the_nesting_know_a_wrong_event_when_they_see_one(tiny, tmp_path):
    _, document, _ = trace_of(tiny, tmp_path)
    first = complete(document)[0]
    crossing = {**first, "ts": first["ts"] + first["dur"] / 2}
    with pytest.raises(AssertionError):
        assert_nested([first, crossing])
    del first["dur"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, SCHEMA)


def test_a_request_shows_its_stages_and_its_facts_and_an_arrow_leads_to_its_batch(tiny, tmp_path):
    (shown, total), document, _ = trace_of(tiny, tmp_path)
    assert (shown, total, document["otherData"]["simulated"]) == (6, 6, True)
    whole = {
        (one["args"]["request_id"], one["name"]): one
        for one in complete(document, REQUESTS_PID)
        if one["cat"] == "request"
    }
    ends = ((0, "request"), (1, "request"), (2, "request rejected"))
    assert sorted(whole) == [(100 * index + number, name) for index in (0, 1) for number, name in ends]
    first = whole[0, "request"]
    inside = [one for one in complete(document, REQUESTS_PID) if one["tid"] == first["tid"] and one["cat"] == "stage"]
    lasted = [one["dur"] for one in inside if first["ts"] <= one["ts"] < first["ts"] + first["dur"]]
    assert (first["ts"], first["dur"], first["args"]["status"]) == (0.0, pytest.approx(sum(lasted)), 200)
    batches = {one["args"]["batch_id"]: one for one in complete(document, SERVICE_PID) if one["cat"] == "batch"}
    arrows = [one for one in document["traceEvents"] if one["ph"] == "f"]
    assert Counter((one["ts"], one["tid"]) for one in arrows) == Counter(
        {(batch["ts"], batch["tid"]): 2 for batch in batches.values()}
    )


def test_threads_have_the_names_that_the_sampler_saw(tiny, real, tmp_path):
    for run, wanted in ((tiny, {"worker-0"}), (real, set())):
        _, document, _ = trace_of(run, tmp_path)
        names = {
            one["args"]["name"]
            for one in document["traceEvents"]
            if (one["name"], one["pid"]) == ("thread_name", SERVICE_PID)
        }
        assert wanted <= names
        assert "thread not recorded" not in names


def test_the_importer_reads_the_same_time_in_each_stage_as_the_ledger(real, tmp_path):
    _, document, path = trace_of(real, tmp_path, limit=10**9)
    imported = read_file(path)
    assert (imported.format, imported.rows.kept) == ("Chrome trace", len(complete(document)))
    held = {weight.name: weight.total for weight in imported.profiles[0].top}
    stages = stage_table(real.table("requests"), real.table("batches")).sum()
    compared = [name for name in ("parse", "queue_wait", "batch_wait", "reply", "receive") if stages[name] > 0]
    assert len(compared) >= 4  # of those that no thread shows once more
    assert [held[name] for name in compared] == [pytest.approx(stages[name], rel=1e-6) for name in compared]


def test_a_long_run_shows_its_first_requests_and_says_how_many(real, tmp_path):
    (shown, total), document, _ = trace_of(real, tmp_path, limit=10)
    assert (shown, total) == (10, len(real.table("requests")))
    assert document["otherData"]["requests_shown"] == 10
    whole = [one for one in complete(document, REQUESTS_PID) if one["cat"] == "request"]
    first = real.table("requests").sort_values("scheduled_ns").head(10)
    assert sorted(one["args"]["request_id"] for one in whole) == sorted(first["request_id"])


def test_a_run_of_a_foreign_file_shows_what_it_knows_of_each_request(tmp_path):
    sample = Path(__file__).parents[1] / "importers" / "samples" / "jmeter.csv"
    run = save_import(tmp_path, judged(read_file(sample)))
    (shown, total), document, _ = trace_of(run, tmp_path)
    jsonschema.validate(document, SCHEMA)
    assert_nested(complete(document))
    assert (shown, total) == (20, 20)
    assert {one["name"] for one in complete(document) if one["cat"] == "stage"} == {"service"}


def test_a_run_without_requests_is_an_error_that_names_them(tiny, tmp_path):
    del tiny.files["requests.parquet"]
    with pytest.raises(ArchiveError, match=r"holds no requests\.parquet"):
        write_trace(tiny, tmp_path / "x.json")
