"""Does any manifest survive the way to JSON and back, and does an id sort by its moment?"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from perfkit.measuring.archive import documents
from perfkit.measuring.archive.manifest import FileFacts, Manifest, files_of, from_document, new_id, to_document

WHERE = Path("run-1/run.json")
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS
)
JSON = st.recursive(
    LEAVES, lambda below: st.lists(below, max_size=3) | st.dictionaries(TEXTS, below, max_size=3), max_leaves=6
)
OBJECTS = st.dictionaries(TEXTS, JSON, max_size=3)
LISTS = st.lists(OBJECTS, max_size=2)
KNOWN = {item.name for item in dataclasses.fields(Manifest)} | {"schema", "hashes"}

MANIFESTS = st.builds(
    Manifest,
    id=TEXTS,
    created=st.datetimes().map(lambda moment: moment.isoformat()),
    simulated=st.booleans(),
    title=TEXTS,
    settings=OBJECTS,
    load=OBJECTS,
    varied=OBJECTS,
    environment=OBJECTS,
    certificate=st.none() | OBJECTS,
    rounds=LISTS,
    gauges=LISTS,
    counters=LISTS,
    generator_reports=LISTS,
    notes=st.lists(TEXTS, max_size=2),
    further=st.dictionaries(TEXTS.filter(lambda name: name not in KNOWN), JSON, max_size=2),
)


@settings(max_examples=40)
@given(MANIFESTS)
def test_any_manifest_comes_back_equal(manifest):
    files = {"series.parquet": FileFacts(sha256="0" * 64, bytes=3)}
    document = documents.decode(documents.encode(to_document(manifest, files), "it"), WHERE)
    assert from_document(document, WHERE) == manifest
    assert files_of(document, WHERE) == files


def test_ids_begin_with_the_moment_and_differ():
    created = "2025-01-02T03:04:05.678+00:00"
    ids = {new_id(created) for _ in range(8)}
    assert {name[:16] for name in ids} == {"20250102-030405-"}
    assert len(ids) > 1
