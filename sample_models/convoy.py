"""What does one busy Python thread do to a model that computes outside of Python? The MLP beside such a thread.

The model gives the interpreter lock away in every layer and needs it back for the next. The other thread
gives it back only when it is asked, after the switch interval: 5 ms unless `switch_interval_s` says
otherwise. So each layer may wait that long, while a core idles.
"""

from __future__ import annotations

import itertools
import threading
from typing import TYPE_CHECKING

from sample_models.mlp import Mlp

if TYPE_CHECKING:
    from perfkit.serving.devices.device import Device


class Convoy(Mlp):
    """The MLP, and a thread that counts for as long as the process lives."""

    def load(self, device: Device, seed: int) -> None:
        """The MLP's weights; starts the other thread, once."""
        super().load(device, seed)
        threading.Thread(target=_count, name="busy-python", daemon=True).start()


def _count() -> None:
    for _ in itertools.count():
        pass
