"""Does a level compute what the network computes in eager float32? By the largest difference, and by direction.

The difference counts against the largest reference value, because outputs of different networks are of
different sizes: unit vectors, probabilities, plain scores.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from torch import Tensor
from torch.nn import functional

from perfkit.errors import TargetFailed
from perfkit.serving.execution.network import Bucket

# Unit roundoff is 2^-24, 2^-8 and 2^-11. In float32 sums of some thousand terms in another order stay below 1e-4.
# The narrow types round after every layer: about 16 roundoffs are allowed, 25 layers in a random walk make 5.
ALLOWED_RATIO = {"float32": 1e-4, "bfloat16": 0.06, "float16": 0.008}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How far a level is from eager float32 in one bucket; the worst of several, by ratio."""

    bucket: str
    difference: float  # the largest, of all outputs
    difference_ratio: float  # against the largest reference value
    least_cosine: float  # of a row and its reference
    allowed_ratio: float

    @property
    def is_allowed(self) -> bool:
        """False also where a NaN came."""
        return self.difference_ratio <= self.allowed_ratio

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return dataclasses.asdict(self)


def compare(outputs: Tensor, reference: Tensor, bucket: Bucket, dtype: str) -> Difference:
    """The difference of a level's outputs from the reference's."""
    found, expected = outputs.cpu().double().flatten(1), reference.cpu().double().flatten(1)
    difference, largest = float((found - expected).abs().max()), float(expected.abs().max())
    return Difference(
        bucket=str(bucket),
        difference=difference,
        difference_ratio=difference / largest if largest else difference,
        least_cosine=float(functional.cosine_similarity(found, expected, dim=1).min()),
        allowed_ratio=ALLOWED_RATIO[dtype],
    )


def refuse_unless_allowed(level: str, dtype: str, found: Difference) -> None:
    """Raises TargetFailed when the level computes something else."""
    if not found.is_allowed:
        raise TargetFailed(
            f"execution.level = {level} with execution.dtype = {dtype} differs from eager float32 by "
            f"{found.difference:.3g}, {found.difference_ratio:.3g} of the largest output (bucket {found.bucket}, least "
            f"cosine {found.least_cosine:.6f}); at most {found.allowed_ratio:g} of it is allowed; set another level "
            "or dtype, or execution.level = own"
        )
