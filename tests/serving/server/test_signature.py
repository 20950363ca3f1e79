"""Does a description of tensors refuse what cannot be one, and does a model without one speak JSON?"""

from __future__ import annotations

import dataclasses

import pytest

from perfkit.errors import ConfigError
from perfkit.serving.server.adapter import complete
from perfkit.serving.server.json_signature import JSON_SIGNATURE, signature_of
from perfkit.serving.server.model import InputRefused
from perfkit.serving.server.signature import Signature, TensorSpec, text_of

PAIR = Signature(
    inputs=(TensorSpec(name="a", datatype="FP32", shape=(2,)),),
    outputs=(TensorSpec(name="b", datatype="FP32", shape=(2,)),),
    to_payload=lambda row: row["a"].tolist(),
    to_tensors=lambda answer: {"b": answer},
)


class Described:
    signature = PAIR

    def predict(self, inputs):
        return inputs


class Plain:
    def predict(self, inputs):
        return inputs


def test_a_users_class_keeps_its_description_and_one_without_takes_json_documents():
    assert signature_of(complete(Described())) is PAIR
    assert signature_of(complete(Plain())) is JSON_SIGNATURE


def test_a_json_document_in_an_element_is_the_payload_and_back():
    assert JSON_SIGNATURE.to_payload({"input": [b'{"a": [1, null]}']}) == {"a": [1, None]}
    assert JSON_SIGNATURE.to_tensors({"b": "ü"}) == {"output": ['{"b":"ü"}'.encode()]}
    with pytest.raises(InputRefused, match="the element is not JSON"):
        JSON_SIGNATURE.to_payload({"input": [b"{"]})


def test_text_must_be_utf_8():
    assert text_of("ü".encode()) == "ü"
    with pytest.raises(InputRefused, match="byte at byte 1"):
        text_of(b"a\xff")


@pytest.mark.parametrize(
    ("datatype", "shape", "message"),
    [("FLOAT", (1,), "datatype 'FLOAT'"), ("FP32", (0,), "shape"), ("FP32", (-2,), "shape"), ("FP32", (1.0,), "shape")],
)
def test_a_tensor_that_the_protocol_does_not_know_is_refused(datatype, shape, message):
    with pytest.raises(ConfigError, match=message):
        TensorSpec(name="t", datatype=datatype, shape=shape)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"inputs": ()}, "at least one"),
        ({"outputs": PAIR.outputs * 2}, "each with its own name"),
        ({"outputs": (TensorSpec(name="b", datatype="FP32", shape=(-1,)),)}, "sizes of outputs must be given"),
    ],
)
def test_a_signature_names_each_tensor_once_and_knows_the_size_of_its_outputs(change, message):
    with pytest.raises(ConfigError, match=message):
        dataclasses.replace(PAIR, **change)
