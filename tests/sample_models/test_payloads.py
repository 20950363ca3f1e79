"""Can the models use every payload that perfkit ships, and are the texts as short or as mixed as they claim?"""

import json
import random
import re

import numpy as np
import pytest
from PIL import Image

from perfkit.resources import data_path
from perfkit.serving.devices.cpu import CpuDevice
from sample_models.minilm import MiniLM
from sample_models.mlp import Mlp
from sample_models.noop import Noop
from sample_models.resnet import ResNet

SCRIPTS = {"latin": "[a-z]", "han": "[一-鿿]", "kana": "[぀-ヿ]", "cyrillic": "[а-я]", "arabic": "[؀-ۿ]"}


def payloads(name):
    lines = data_path(*name.split("/")).read_text("utf-8").splitlines()
    bodies = [json.loads(line) for line in lines]
    assert all(body.keys() == {"input"} for body in bodies)
    return [body["input"] for body in bodies]


@pytest.fixture(scope="module")
def minilm():
    model = MiniLM()
    model.load(CpuDevice(), 0)
    return model


@pytest.fixture(scope="module")
def short():
    return payloads("texts/short.jsonl")


@pytest.fixture(scope="module")
def mixed():
    return payloads("texts/mixed.jsonl")


def test_the_short_queries_have_at_most_24_tokens(minilm, short):
    lengths = [len(minilm.preprocess(text)) for text in short]
    assert len(short) >= 200
    assert max(lengths) <= 24


def test_the_mixed_texts_spread_evenly_over_the_logarithm_of_their_length(minilm, mixed):
    lengths = np.array([len(minilm.preprocess(text)) for text in mixed])
    assert len(mixed) >= 200
    assert (lengths.min(), lengths.max()) == (5, 200)
    doublings = np.histogram(lengths, [5, 10, 20, 40, 80, 160, 320])[0] / len(mixed)
    assert doublings[:5].min() > 0.12
    assert doublings[:5].max() < 0.28


def test_random_batches_of_16_waste_most_of_the_work_on_padding_with_mixed_texts_only(minilm, short, mixed):
    def wasted_ratio(texts):
        chosen = random.Random(1)
        batches = [minilm.collate([minilm.preprocess(t) for t in chosen.sample(texts, 16)]) for _ in range(50)]
        return 1 - sum(batch.units for batch in batches) / sum(batch.padded_units for batch in batches)

    assert wasted_ratio(short) < 0.4
    assert wasted_ratio(mixed) > 0.6


def test_no_text_comes_twice(short, mixed):
    assert len({*short, *mixed}) == len(short) + len(mixed)


def test_each_set_is_written_in_five_scripts(short, mixed):
    for texts in (short, mixed):
        counts = {name: sum(bool(re.search(script, text)) for text in texts) for name, script in SCRIPTS.items()}
        assert min(counts.values()) >= 8, counts


@pytest.mark.parametrize("kind", [MiniLM, ResNet, Mlp, Noop])
def test_each_model_takes_all_of_its_default_payloads_and_its_own_example(kind, minilm):
    model = minilm if kind is MiniLM else kind()
    sent = [*payloads(kind.payloads), model.example()]
    collated = model.collate([model.preprocess(payload) for payload in sent])
    assert collated.size == len(sent)


def test_the_pictures_are_those_beside_their_payloads_and_of_different_sizes():
    files = sorted(data_path("images").glob("*.jpg"))
    sizes = {Image.open(file).size for file in files}
    assert len(sizes) == len(files) == len(payloads("images/images.jsonl"))
    assert sum(file.stat().st_size for file in files) < 100_000


def test_the_numbers_are_64_a_line_and_never_the_same_line_twice():
    rows = payloads("numbers/mlp.jsonl")
    assert {len(row) for row in rows} == {64}
    assert len({tuple(row) for row in rows}) == len(rows) == 32
