"""Does a model's output hold something that is not a number?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def has_nan(output: Any) -> bool:
    """Whether a NaN lies anywhere in a number, an array or tensor, or containers of these; other things have none."""
    if isinstance(output, Mapping):
        return any(has_nan(value) for value in output.values())
    if isinstance(output, (list, tuple)):
        return any(has_nan(value) for value in output)
    if not isinstance(output, float) and not hasattr(output, "dtype"):
        return False
    differs = output != output  # NaN alone is unlike itself, in numbers, arrays and tensors alike
    return bool(differs.any()) if hasattr(differs, "any") else bool(differs)
