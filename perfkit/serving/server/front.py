"""What do all connections of a port share, and how do they end together?"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from perfkit.clock import REAL_CLOCK
from perfkit.serving.server.connection import Connection, Request
from perfkit.settings.surroundings import HttpSettings


class Front:
    """What all connections of a port share. For the event loop's thread."""

    def __init__(self, limits: HttpSettings, handle: Callable[[Request], None]) -> None:
        self.limits = limits
        self.handle = handle
        self.connections: set[Connection] = set()
        self.is_draining = False
        self.errors = 0  # requests that never became whole: bad syntax, too large, too slow
        self._emptied = asyncio.Event()

    def sweep(self) -> None:
        """Close what is too slow or idle too long; call it often, for nobody is cut off between two calls."""
        now_ns = REAL_CLOCK.now_ns()
        for connection in list(self.connections):
            connection.enforce_deadlines(now_ns)

    def drain(self) -> None:
        """From now on every answer is the last of its connection."""
        self.is_draining = True

    def turn_away(self, code: str, message: str) -> None:
        """Answer every request in hand or half arrived with 503 and close its connection."""
        for connection in list(self.connections):
            connection.turn_away(code, message)

    async def close_idle(self) -> None:
        """Close the connections without a request in hand; returns when all connections have ended."""
        for connection in list(self.connections):
            connection.close_if_idle()
        if self.connections:
            await self._emptied.wait()

    def forget(self, connection: Connection) -> None:
        """A connection has ended."""
        self.connections.discard(connection)
        if self.is_draining and not self.connections:
            self._emptied.set()
