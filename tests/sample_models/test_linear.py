"""Does the packed linear layer compute what torch's own does?"""

import pytest
import torch

from sample_models import linear as linear_module
from sample_models.linear import PackedLinear, PlainLinear, can_pack, fastest_linear

needs_packing = pytest.mark.skipif(not can_pack(), reason="this build of torch has no oneDNN")


@pytest.fixture
def tensors():
    generator = torch.Generator().manual_seed(3)
    return [torch.randn(shape, generator=generator) for shape in ((48, 32), (48,), (2, 5, 32), (2, 5, 48))]


@needs_packing
def test_packed_and_plain_agree_in_all_three_forms(tensors):
    weight, bias, x, residual = tensors
    packed, plain = PackedLinear(weight, bias), PlainLinear(weight, bias)
    torch.testing.assert_close(packed(x), plain(x), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(packed.gelu(x), plain.gelu(x), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(packed.plus(x, residual), plain.plus(x, residual), rtol=1e-5, atol=1e-5)


def test_the_sum_leaves_the_residual_as_it_was(tensors):
    weight, bias, x, residual = tensors
    before = residual.clone()
    fastest_linear(weight, bias).plus(x, residual)
    assert torch.equal(residual, before)


def test_what_cannot_be_packed_stays_plain(tensors, monkeypatch):
    weight, bias, *_ = tensors
    assert type(fastest_linear(weight.double(), bias.double())) is PlainLinear
    monkeypatch.setattr(linear_module, "can_pack", lambda: False)
    assert type(fastest_linear(weight, bias)) is PlainLinear
