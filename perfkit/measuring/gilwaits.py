"""How long do the service's threads wait for the GIL? The server's own sleeper, switched on for one round."""

from __future__ import annotations

import json

from perfkit.clock import NS_PER_S
from perfkit.errors import CollectorUnavailable, TargetFailed
from perfkit.measuring.collectors.collector import Recording, SeriesRow, Target
from perfkit.measuring.service import Service

_PATH = "/gil-waits"


class GilWaits:
    """Collector of the sleeper's oversleeps, one row a sleep (about 1,000 a second). Used by one thread."""

    name = "gil-waits"

    def __init__(self, service: Service) -> None:
        self._control = service.control

    def start(self, target: Target) -> None:
        """Switch the sleeper on; raises CollectorUnavailable for a service without a control port."""
        if self._control is None:
            raise CollectorUnavailable("the service has no control port; launch it with perfkit to record GIL waits")
        self._control.call("POST", _PATH)

    def stop(self) -> Recording:
        """Read what was measured and switch the sleeper off."""
        assert self._control is not None
        try:
            samples = json.loads(self._control.call("GET", _PATH))["samples_ns"]
            self._control.call("DELETE", _PATH)
        except TargetFailed as error:
            return Recording(name=self.name, series=[], files=(), notes=(), missing=str(error))
        rows = [SeriesRow(at, "gil", "oversleep", "s", waited / NS_PER_S) for at, waited in samples]
        return Recording(name=self.name, series=rows, files=(), notes=())
