"""Does the classifier decode real JPEGs, refuse what is none, and say that it is untrained?"""

import base64
import io
import json

import numpy as np
import pytest
import torch
from PIL import Image

from perfkit.serving.devices.cpu import CpuDevice
from perfkit.serving.server.model import InputRefused
from sample_models.jpeg import decode_jpeg
from sample_models.resnet import SIDE, ResNet


@pytest.fixture(scope="module")
def resnet():
    model = ResNet()
    model.load(CpuDevice(), 5)
    return model


def jpeg(image, **options):
    file = io.BytesIO()
    image.save(file, "JPEG", **options)
    return file.getvalue()


def encoded(content):
    return base64.b64encode(content).decode()


def with_size(content, width, height):
    """The same file, its header claiming another size."""
    start = content.index(b"\xff\xc0") + 5
    return content[:start] + height.to_bytes(2, "big") + width.to_bytes(2, "big") + content[start + 4 :]


def answer(model, payloads):
    collated = model.collate([model.preprocess(payload) for payload in payloads])
    return [model.postprocess(row) for row in model.split(model.predict(collated.inputs), collated.size)]


def test_the_answer_names_a_class_its_score_and_that_nothing_was_trained(resnet):
    (found,) = answer(resnet, [resnet.example()])
    assert json.loads(json.dumps(found)) == {"class": found["class"], "score": found["score"], "trained": False}
    assert 0 <= found["class"] < 1000
    assert 1 / 1000 < found["score"] < 1


def test_the_network_has_the_weights_and_the_work_of_resnet_18(resnet):
    layers = [resnet._stem]
    for block in resnet._blocks:
        layers += [block.first, block.second, *([block.around] if block.around else [])]
    weights = sum(layer.weight.numel() for layer in layers) + resnet._head[0].numel()
    assert (len(layers), weights) == (20, 11_678_912)


def test_a_batch_answers_each_picture_as_if_it_were_alone(resnet):
    pictures = [Image.linear_gradient("L"), Image.radial_gradient("L"), Image.new("RGB", (90, 60), (200, 30, 40))]
    payloads = [encoded(jpeg(picture)) for picture in pictures]
    alone = torch.cat([resnet.predict(resnet.collate([resnet.preprocess(p)]).inputs) for p in payloads])
    together = resnet.predict(resnet.collate([resnet.preprocess(p) for p in payloads]).inputs)
    torch.testing.assert_close(together, alone, rtol=1e-3, atol=1e-6)
    assert len({round(float(score), 5) for score in alone.max(1).values}) == 3


def test_both_forms_of_the_payload_mean_the_same(resnet):
    text = resnet.example()
    assert np.array_equal(resnet.preprocess(text), resnet.preprocess({"b64": text}))


def test_the_seed_decides_the_weights_and_torchs_own_randomness_stays_where_it_was(resnet):
    same, other = ResNet(), ResNet()
    before = torch.random.get_rng_state()
    same.load(CpuDevice(), 5)
    other.load(CpuDevice(), 6)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert answer(same, [resnet.example()]) == answer(resnet, [resnet.example()])
    assert answer(other, [resnet.example()]) != answer(resnet, [resnet.example()])


def test_collate_counts_every_pixel_as_work(resnet):
    collated = resnet.collate([resnet.preprocess(resnet.example())] * 3)
    pixels = 3 * SIDE * SIDE
    assert tuple(collated.inputs.shape) == (3, 3, SIDE, SIDE)
    assert (collated.units, collated.padded_units, collated.nbytes) == (pixels, pixels, pixels * 3 * 4)


@pytest.mark.parametrize("size", [(640, 400), (300, 420), (40, 30), (1, 500), (2000, 1500)])
@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK"])
def test_any_size_and_colour_mode_becomes_one_normalised_square(mode, size):
    white = {"RGB": (255, 255, 255), "L": 255, "CMYK": (0, 0, 0, 0)}[mode]
    pixels = decode_jpeg(jpeg(Image.new(mode, size, white)), SIDE)
    expected = [(1 - mean) / deviation for mean, deviation in ((0.485, 0.229), (0.456, 0.224), (0.406, 0.225))]
    assert (pixels.shape, pixels.dtype) == ((3, SIDE, SIDE), np.float32)
    assert pixels.mean((1, 2)) == pytest.approx(expected, abs=0.03)


def test_the_middle_of_a_wide_picture_is_what_remains():
    wide = Image.new("RGB", (900, 300), (0, 0, 0))
    wide.paste((255, 255, 255), (300, 0, 600, 300))
    pixels = decode_jpeg(jpeg(wide, quality=95), SIDE)
    assert pixels[0, :, 5:-5].min() > 2


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (17, "of type int; send a JPEG in base64"),
        ({"url": "x"}, "of type dict; send a JPEG in base64"),
        ("not base64 at all!", "not base64"),
        ("é", "not base64"),
        ("", "0 bytes are not a JPEG"),
        (encoded(b"plain text"), "10 bytes are not a JPEG"),
        (encoded(b"\x89PNG\r\n\x1a\n"), "are not a JPEG; send one, other formats are not read"),
    ],
)
def test_what_is_not_a_base64_jpeg_is_refused_with_the_reason(resnet, payload, reason):
    with pytest.raises(InputRefused, match=reason):
        resnet.preprocess(payload)


def test_a_jpeg_that_is_cut_off_is_refused(resnet):
    content = jpeg(Image.radial_gradient("L"))
    for kept in (20, len(content) // 3, len(content) * 9 // 10):
        with pytest.raises(InputRefused, match=r"not a JPEG|cut off or damaged"):
            resnet.preprocess(encoded(content[:kept]))


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize(("width", "height"), [(6000, 4001), (12_000, 9_000), (60_000, 60_000)])
def test_a_small_file_that_claims_a_huge_picture_is_refused_before_it_is_decoded(resnet, width, height):
    bomb = with_size(jpeg(Image.new("RGB", (16, 16))), width, height)
    with pytest.raises(InputRefused, match="at most 24000000"):
        resnet.preprocess(encoded(bomb))
