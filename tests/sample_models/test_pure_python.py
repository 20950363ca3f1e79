"""Does the pure-Python classifier count what it says, and refuse what is no text?"""

import json

import numpy
import pytest

from perfkit.resources import data_path
from perfkit.serving.server.model import InputRefused
from sample_models.pure_python import BUCKETS, PurePython


@pytest.fixture(scope="module")
def model():
    made = PurePython()
    made.load(None, 7)
    return made


def test_a_text_becomes_the_shares_of_its_neighbouring_characters(model):
    row = model.preprocess("abab")
    ab, ba = (97 * 31 + 98) % BUCKETS, (98 * 31 + 97) % BUCKETS
    assert {place: round(float(share), 4) for place, share in enumerate(row) if share} == {ab: 0.6667, ba: 0.3333}


def test_a_batch_gives_each_text_the_scores_that_it_has_alone(model):
    rows = [model.preprocess(text) for text in ("first text", "second")]
    together = model.split(model.predict(model.collate(rows).inputs), 2)
    alone = [model.split(model.predict(model.collate([row]).inputs), 1)[0] for row in rows]
    assert numpy.allclose(together, alone)
    assert [len(model.postprocess(scores)) for scores in together] == [4, 4]


@pytest.mark.parametrize("payload", ["", "x", "x" * 2001, 5, None, ["text"]])
def test_what_is_no_text_is_refused(model, payload):
    with pytest.raises(InputRefused, match="send one"):
        model.preprocess(payload)


def test_its_payloads_are_texts_that_it_takes(model):
    lines = data_path(*model.payloads.split("/")).read_text("utf-8").splitlines()
    assert all(model.preprocess(json.loads(line)["input"]).sum() == pytest.approx(1) for line in lines[:5])
