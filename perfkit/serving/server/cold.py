"""Who answers health probes while the main thread loads the model?

Loading may take minutes, and a probe that hears nothing restarts a service that only needs time. A
thread with an event loop of its own says *live* and *not ready* on the same port until the service
takes over; every answer closes its connection, so that the next one reaches the service.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import socket
import threading
from types import TracebackType

from perfkit.serving.server.connection import Connection
from perfkit.serving.server.front import Front
from perfkit.serving.server.router import Router
from perfkit.serving.server.routes import cold_routes
from perfkit.settings.surroundings import HttpSettings

_SWEEP_S = 0.25
_FLUSH_S = 1.0  # for requests that have begun to arrive


class ColdFront:
    """Answers on the listener for as long as its `with` block lasts. Owns one thread."""

    def __init__(self, listener: socket.socket, limits: HttpSettings, token: str | None) -> None:
        self._listener = listener.dup()
        self._limits = limits
        self._router = Router(cold_routes(), token)
        self._loop = asyncio.new_event_loop()
        self._stopped = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="cold-front", daemon=True)

    def __enter__(self) -> ColdFront:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join()

    def _run(self) -> None:
        with contextlib.closing(self._loop):
            self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        front = Front(self._limits, self._router.handle)
        front.drain()
        server = await self._loop.create_server(functools.partial(Connection, front), sock=self._listener)
        while not self._stopped.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), _SWEEP_S)
            front.sweep()
        server.close()
        await asyncio.sleep(0)  # read what has come on the connections taken last
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(front.close_idle(), _FLUSH_S)
