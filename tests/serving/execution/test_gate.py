"""Does the gate see a level that computes something else, and only that?"""

import math

import pytest
import torch

from perfkit.errors import TargetFailed
from perfkit.serving.execution.gate import ALLOWED_RATIO, Difference, compare, refuse_unless_allowed
from perfkit.serving.execution.network import Bucket

REFERENCE = torch.tensor([[3.0, 4.0], [0.0, -2.0]])


def test_the_difference_counts_against_the_largest_reference_value():
    found = compare(REFERENCE + torch.tensor([[0.0, 0.0], [0.02, 0.0]]), REFERENCE, Bucket(2, 8), "bfloat16")
    assert found == Difference(
        bucket="2 x 8",
        difference=pytest.approx(0.02),
        difference_ratio=pytest.approx(0.005),
        least_cosine=pytest.approx(2 / math.hypot(2, 0.02)),
        allowed_ratio=0.06,
    )
    assert found.is_allowed


@pytest.mark.parametrize("dtype", ALLOWED_RATIO)
def test_more_than_is_allowed_is_refused_with_both_figures_and_what_to_do(dtype):
    wrong = REFERENCE + 4 * 1.1 * ALLOWED_RATIO[dtype]
    found = compare(wrong, REFERENCE, Bucket(2, 0), dtype)
    with pytest.raises(TargetFailed) as refusal:
        refuse_unless_allowed("jit", dtype, found)
    told = str(refusal.value)
    assert told.startswith(f"execution.level = jit with execution.dtype = {dtype} differs from eager float32 by ")
    assert f"{found.difference_ratio:.3g} of the largest output (bucket 2, " in told
    assert told.endswith(
        f"at most {ALLOWED_RATIO[dtype]:g} of it is allowed; set another level or dtype, or execution.level = own"
    )


def test_a_nan_is_never_allowed():
    assert not compare(torch.full((2, 2), torch.nan), REFERENCE, Bucket(2, 0), "bfloat16").is_allowed


def test_equal_outputs_pass_even_when_all_are_zero():
    zeros = torch.zeros(2, 2)
    assert compare(zeros, zeros, Bucket(2, 0), "float32").difference_ratio == 0
