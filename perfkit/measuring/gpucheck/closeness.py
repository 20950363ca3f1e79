"""How far are outputs from what they should be? The norm of the difference against the norm of what is right."""

from __future__ import annotations

import math
from typing import Any


def error_ratio(found: Any, expected: Any) -> float:
    """Of two tensors of the host: |found - expected| / |expected|; infinite where NaN or an infinity came."""
    found, expected = found.double(), expected.double()
    if found.shape != expected.shape:
        return math.inf
    largest = float(expected.norm())
    error = float((found - expected).norm())
    ratio = error / largest if largest else error
    return ratio if math.isfinite(ratio) else math.inf
