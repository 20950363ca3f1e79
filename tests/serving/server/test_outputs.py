"""Is a NaN found wherever it hides, and nothing else taken for one?"""

from __future__ import annotations

import numpy
import pytest
import torch

from perfkit.serving.server.outputs import has_nan

NAN = float("nan")


@pytest.mark.parametrize(
    "output",
    [
        NAN,
        [1.0, [2.0, NAN]],
        {"a": (0, {"b": NAN})},
        numpy.array([1.0, NAN]),
        numpy.float32(NAN),
        [numpy.full((2, 3), NAN, dtype="f2")],
        torch.tensor([[0.0, NAN]]),
        torch.tensor(NAN, dtype=torch.bfloat16),
    ],
)
def test_a_nan_is_found(output):
    assert has_nan(output) is True


@pytest.mark.parametrize(
    "output",
    [
        0.0,
        float("inf"),
        7,
        None,
        "nan",
        b"nan",
        [],
        {"nan": 1},
        object(),
        numpy.arange(3),
        numpy.array([]),
        numpy.array(["nan"]),
        numpy.float64(1),
        torch.zeros(3),
        torch.tensor([], dtype=torch.int64),
    ],
)
def test_other_things_have_none(output):
    assert has_nan(output) is False
