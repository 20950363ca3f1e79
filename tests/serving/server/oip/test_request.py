"""Is a request in tensors read or refused, and never anything else, whatever is done to it? In process."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfkit.serving.server.call import MalformedRequest
from perfkit.serving.server.connection import Request
from perfkit.serving.server.oip.request import read_infer
from perfkit.serving.server.signature import ANY, Signature, TensorSpec
from perfkit.settings.queueing import QueueSettings
from perfkit.settings.server import ServerSettings

LOOSE = Signature(
    inputs=(
        TensorSpec(name="a", datatype="INT16", shape=(ANY, 2)),
        TensorSpec(name="b", datatype="BYTES", shape=(1,)),
        TensorSpec(name="c", datatype="BOOL", shape=()),
    ),
    outputs=(TensorSpec(name="d", datatype="FP16", shape=(1,)),),
    to_payload=lambda row: (row["a"].tolist(), row["b"].tolist(), bool(row["c"])),
    to_tensors=lambda answer: {"d": [answer]},
)


def reads(body, signature=LOOSE, **headers):
    """What becomes of a body."""
    model = SimpleNamespace(signature=signature)
    service = SimpleNamespace(model=model, settings=ServerSettings(model="noop", queue=QueueSettings(depth=8)))
    raw = {name.replace("_", "-").encode(): value.encode("latin-1") for name, value in headers.items()}
    return read_infer(service, Request(None, b"POST", b"/v2", raw, body, 0, True))


def good():
    return {
        "id": "x",
        "inputs": [
            {"name": "a", "datatype": "INT16", "shape": [2, 1, 2], "data": [[[1, 2]], [[3, 4]]]},
            {"name": "b", "datatype": "BYTES", "shape": [2, 1], "parameters": {"binary_data_size": 11}},
            {"name": "c", "datatype": "BOOL", "shape": [2], "parameters": {"binary_data_size": 2}},
        ],
        "outputs": [{"name": "d", "parameters": {"binary_data": True}}],
    }


TAIL = b"\1\0\0\0b\2\0\0\0bb\0\1"


def test_tensors_of_several_kinds_become_one_payload_an_input():
    head = json.dumps(good()).encode()
    call = reads(head + TAIL, inference_header_content_length=str(len(head)))
    assert call.payloads == [([[1, 2]], [b"b"], False), ([[3, 4]], [b"bb"], True)]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
SIZES = st.integers(-3, 40) | st.sampled_from([2**31, 2**63, -(2**63), 10**30])


@st.composite
def damaged(draw):
    """A good document with one to three places changed, and how many bytes follow it."""
    document = good()
    for _ in range(draw(st.integers(1, 3))):
        holder = draw(st.sampled_from([document, *document["inputs"], *document["outputs"]]))
        key = draw(st.sampled_from(["inputs", "outputs", "id", "parameters", "name", "datatype", "shape", "data"]))
        changed = draw(
            VALUES | st.lists(SIZES, max_size=4) | st.fixed_dictionaries({"binary_data_size": SIZES | VALUES})
        )
        if holder is document and key in ("inputs", "outputs"):
            continue  # else nothing is left of it to look at
        holder[key] = changed
    return document, draw(st.binary(max_size=24) | st.just(TAIL))


@settings(max_examples=120, deadline=None)
@given(damaged())
def test_a_damaged_request_is_read_or_refused(pair):
    document, tail = pair
    head = json.dumps(document).encode()
    try:
        call = reads(head + tail, inference_header_content_length=str(len(head)))
    except MalformedRequest as refusal:
        outcome = refusal.status
    else:
        outcome = len(call.payloads)
        assert outcome == document["inputs"][0]["shape"][0]
    assert outcome in (400, 415, 422, *range(1, 9))


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200), st.text(st.characters(max_codepoint=255), max_size=20))
def test_any_bytes_under_any_length_are_read_or_refused(body, length):
    with pytest.raises(MalformedRequest) as refusal:
        reads(body, inference_header_content_length=length)
    assert refusal.value.status == 400


@pytest.mark.parametrize(
    ("datatype", "shape", "body", "payload"),
    [("FP32", (2,), b"\0\0\x80\x3f\0\0\0\x40", [1.0, 2.0]), ("BYTES", (1,), b"\xff\xd8", [b"\xff\xd8"])],
)
def test_a_body_of_bytes_alone_needs_no_json(datatype, shape, body, payload):
    signature = Signature(
        inputs=(TensorSpec(name="x", datatype=datatype, shape=shape),),
        outputs=LOOSE.outputs,
        to_payload=lambda row: row["x"].tolist(),
        to_tensors=LOOSE.to_tensors,
    )
    assert reads(body, signature, inference_header_content_length="0").payloads == [payload]
    with pytest.raises(MalformedRequest, match="bytes alone is for models with one input"):
        reads(body, inference_header_content_length="0")
