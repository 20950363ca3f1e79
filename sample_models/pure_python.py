"""What do threads gain when the work is Python itself? A text classifier whose preprocessing never leaves it.

Preprocess hashes every pair of neighbouring characters into 64 counts, in plain Python and over and over,
as code does that walks a text by hand; predict is one small product of matrices. So nearly all of a
request's time is spent holding the interpreter lock.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy
from numpy.typing import NDArray

from perfkit.serving.server.model import Collated, InputRefused

if TYPE_CHECKING:
    from perfkit.serving.devices.device import Device

BUCKETS = 64
CLASSES = 4
_PASSES = 1000  # over a text: a few milliseconds for a short query
_MOST_CHARACTERS = 2000
_MULTIPLIER, _MODULUS = 31, (1 << 31) - 1

Row = NDArray[numpy.float32]


class PurePython:
    """Text in, 4 scores out. Seeded and untrained. Any number of threads may use one instance after `load`."""

    payloads: ClassVar[str] = "texts/short.jsonl"

    _weights: Row

    def load(self, device: Device, seed: int) -> None:
        """Draw the weights from `seed`."""
        self._weights = numpy.random.default_rng(seed).standard_normal((BUCKETS, CLASSES)).astype(numpy.float32)

    def preprocess(self, payload: Any) -> Row:
        """The share of each hash bucket among the text's neighbouring characters."""
        if not isinstance(payload, str) or not 2 <= len(payload) <= _MOST_CHARACTERS:
            raise InputRefused(f"the input is no text of 2 to {_MOST_CHARACTERS} characters; send one")
        counts = [0] * BUCKETS
        for _ in range(_PASSES):
            for first, second in itertools.pairwise(payload):
                counts[(ord(first) * _MULTIPLIER + ord(second)) % _MODULUS % BUCKETS] += 1
        return numpy.array(counts, numpy.float32) / numpy.float32(sum(counts))

    def collate(self, items: Sequence[Row]) -> Collated:
        """One row a text."""
        rows = numpy.stack(items)
        return Collated(inputs=rows, size=len(items), units=len(items), padded_units=len(items), nbytes=rows.nbytes)

    def predict(self, inputs: Row) -> Row:
        """Scores, one row a text."""
        scores: Row = inputs @ self._weights
        return scores

    def split(self, outputs: Row, size: int) -> Sequence[Row]:
        """One row each."""
        return list(outputs)

    def postprocess(self, output: Row) -> list[float]:
        """The scores as numbers."""
        return [float(score) for score in output]

    def example(self) -> str:
        """A short query."""
        return "how do I reset my password"
