"""What does a way of running a network offer, and what does it need?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from torch.nn import Module

from perfkit.serving.execution.network import Arguments, Call, Network


class Level(Protocol):
    """One way. `prepare` is called in one thread, before workers run and again when buckets come; `open` by workers.

    Whatever takes long or may not happen in several threads at once belongs into `prepare`.
    """

    is_static: bool  # takes the shapes that it was prepared for, and no others
    settles_after: int  # calls of one shape until they take their final form

    def prepare(self, module: Module, network: Network, examples: Sequence[Arguments]) -> None:
        """Make what every worker shares; the module is the network's in the wanted dtype."""

    def open(self) -> Call:
        """The calling thread's own way to call; it gives what can be read outside of torch's autograd."""

    def graphs(self) -> int | None:
        """How many graphs the process has compiled so far; None where they are none of the level's."""
