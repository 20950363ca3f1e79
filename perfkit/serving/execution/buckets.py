"""Which shapes does a level that only takes fixed ones get to see, and how is a call brought to one of them?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import torch

from perfkit.serving.execution.network import Arguments, Bucket


class Grid(NamedTuple):
    """Sizes and lengths, both ascending."""

    sizes: tuple[int, ...]
    lengths: tuple[int, ...]

    def all(self) -> list[Bucket]:
        """Every size at every length."""
        return [Bucket(size, length) for size in self.sizes for length in self.lengths]

    def few(self) -> list[Bucket]:
        """What stands for all of them where any shape is taken: one row of each length, and the most short rows."""
        ones = [Bucket(1, length) for length in self.lengths]
        return list(dict.fromkeys([*ones, Bucket(self.sizes[-1], self.lengths[0])]))


def sizes_up_to(most: int) -> tuple[int, ...]:
    """1, 2, 4, … and the most: at worst a call computes twice its rows."""
    return (*(1 << power for power in range((most - 1).bit_length())), most)


def lengths_up_to(longest: int, wanted: Iterable[int]) -> tuple[int, ...]:
    """The wanted lengths that rows can have, and the longest, ascending; (0,) where rows have one length only."""
    return tuple(sorted({*(length for length in wanted if length < longest), longest}))


def with_rows(arguments: Arguments, rows: int) -> Arguments:
    """The arguments with so many rows, the last being repeated: a row like any other computes like any other."""
    missing = rows - arguments[0].shape[0]
    if not missing:
        return arguments
    return tuple(torch.cat([one, one[-1:].expand(missing, *one.shape[1:])]) for one in arguments)
