"""How long will a batch take that a worker begins now? The estimate behind dropping what would come too late.

Mean plus four mean deviations, both moving, as TCP sets its retransmission timer (Jacobson 1988, RFC 6298): where
batches take nearly the same time it is close to that, and where they scatter it is careful. Who drops everything
learns nothing, so the estimate gives way until somebody is let through.
"""

from __future__ import annotations

_MEAN_WEIGHT = 1 / 8  # of the newest batch, as in RFC 6298
_DEVIATION_WEIGHT = 1 / 4
_DEVIATIONS = 4
_YIELD = 3 / 4  # what is left of the estimate when nobody passed it


class Pace:
    """Moving estimate of a batch's time. Threads may share it unlocked: a lost update is one batch not learnt from."""

    __slots__ = ("_deviation_ns", "_mean_ns", "expected_ns")

    def __init__(self) -> None:
        self._mean_ns = 0.0
        self._deviation_ns = 0.0
        self.expected_ns = 0  # before anything was learnt nothing is dropped

    def took(self, batch_ns: int) -> None:
        """A batch was done after so long."""
        if self._mean_ns:
            off_ns = batch_ns - self._mean_ns
            self._deviation_ns += _DEVIATION_WEIGHT * (abs(off_ns) - self._deviation_ns)
            self._mean_ns += _MEAN_WEIGHT * off_ns
        else:
            self._mean_ns = batch_ns
        self.expected_ns = round(self._mean_ns + _DEVIATIONS * self._deviation_ns)

    def dropped_all(self) -> None:
        """Nobody was let through for the sake of this estimate."""
        self._deviation_ns *= _YIELD
        self._mean_ns *= _YIELD
        self.expected_ns = round(self.expected_ns * _YIELD)
