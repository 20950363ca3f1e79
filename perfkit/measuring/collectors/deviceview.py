"""What does a server of ours tell of its own device, and how does that become series?

A device's figures carry their units at the end of their names. Those of a simulated device stand
under `gpu:simulated`, so that what reads a real GPU's series reads them too; the others under
`device:NAME`. Seconds and joules are counters (`sm_active` in s is time, not a share of it).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perfkit.measuring.collectors.collector import Recording, SeriesRow

_UNITS = {"s": "s", "j": "J", "w": "W", "hz": "Hz", "ratio": "ratio", "bytes": "bytes"}
_SIMULATED = "simulated"


class DeviceView:
    """Collects a device's figures from the server's statistics. Used by one thread."""

    def __init__(self) -> None:
        self._rows: list[SeriesRow] = []

    def note(self, stats: Mapping[str, Any]) -> None:
        """Add the figures of one reading of the statistics; a server that tells none adds none."""
        device = stats["device"]
        owner = _SIMULATED if stats["simulated"] else "device"
        source = f"gpu:{_SIMULATED}" if stats["simulated"] else f"device:{device['name']}"
        at_ns = stats["gauge"]["time_ns"]
        for figure, value in device.get("figures", {}).items():
            name, unit = split_unit(figure.removeprefix(f"{owner}_"))
            self._rows.append(SeriesRow(at_ns, source, name, unit, float(value)))

    def recording(self) -> Recording:
        """Everything noted so far."""
        return Recording(name="device", series=self._rows, files=(), notes=())


def split_unit(figure: str) -> tuple[str, str]:
    """A figure's name without its unit, and the unit; a count where it has none."""
    stem, _, ending = figure.rpartition("_")
    return (stem, _UNITS[ending]) if stem and ending in _UNITS else (figure, "count")
