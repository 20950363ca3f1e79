"""Where does a scan get a service at the setting of its next point?

A scan is exploratory: one server process is reconfigured live from point to point. Only a setting
that cannot change live brings a fresh process.
"""

from __future__ import annotations

from types import TracebackType
from typing import Protocol, Self

from perfkit import fields
from perfkit.errors import TargetFailed
from perfkit.measuring.service import Service, launch
from perfkit.settings.server import ServerSettings


class Host(Protocol):
    """Gives the service, at a setting."""

    def at(self, settings: ServerSettings | None) -> Service:
        """The service, at that setting; raises TargetFailed or ConfigError."""


class Given:
    """A service that somebody else started and will end; its live settings may be changed."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def at(self, settings: ServerSettings | None) -> Service:
        """The service, moved to those settings live; raises TargetFailed or ConfigError."""
        _move(self._service, settings)
        return self._service


class Launched:
    """A service of the scan's own, started when first needed. Ends with the `with` block."""

    def __init__(self) -> None:
        self._service: Service | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the service, if it runs."""
        if self._service is not None:
            self._service.close()
            self._service = None

    def at(self, settings: ServerSettings | None) -> Service:
        """The service at those settings, started afresh where they need it; raises TargetFailed or ConfigError."""
        if self._service is not None and self._needs_fresh(self._service, settings):
            self.close()
        if self._service is None:
            self._service = launch(settings)
        else:
            _move(self._service, settings)
        return self._service

    def _needs_fresh(self, service: Service, settings: ServerSettings | None) -> bool:
        present = service.settings
        if present is None or settings is None:
            raise TargetFailed("a scan of its own needs settings to launch a service with")
        return bool(fields.needs_restart(present, settings))


def _move(service: Service, settings: ServerSettings | None) -> None:
    present = service.settings
    if settings is None or present is None:
        return
    if changes := fields.changes(present, settings):
        service.configure(changes)
