"""How many requests are in the service, on average? A gauge that integrates itself over time.

It is kept apart from the ledger on purpose: Little's law compares the two.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class GaugeReading:
    """The gauge at one instant: its value, and its running integral (requests x nanoseconds)."""

    time_ns: int
    in_flight: int
    area_ns: int


class InFlightGauge:
    """Requests accepted and not yet replied to. For one thread: the event loop's."""

    __slots__ = ("_area_ns", "_in_flight", "_last_ns")

    def __init__(self, now_ns: int) -> None:
        self._in_flight = 0
        self._area_ns = 0
        self._last_ns = now_ns

    def add(self, change: int, now_ns: int) -> None:
        """The number in flight changes by `change` at `now_ns`."""
        self._area_ns += self._in_flight * (now_ns - self._last_ns)
        self._last_ns = now_ns
        self._in_flight += change

    def read(self, now_ns: int) -> GaugeReading:
        """The gauge as of now."""
        self.add(0, now_ns)
        return GaugeReading(time_ns=now_ns, in_flight=self._in_flight, area_ns=self._area_ns)
