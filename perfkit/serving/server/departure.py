"""How does the service end without losing a request that it has taken?

Readiness says no first, and the listener stays for `http.pre_stop_s`, so that balancers see it and turn
away. Then nothing new is let in, everything accepted is answered, and the process may end.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import os
import socket
from collections.abc import Iterator
from typing import NoReturn

from perfkit.serving.devices.device import DeviceLost
from perfkit.serving.server.connection import Connection
from perfkit.serving.server.deaths import LOST
from perfkit.serving.server.front import Front
from perfkit.serving.server.rejections import REJECTIONS
from perfkit.serving.server.service import Service

_FINISH_S = 0.25  # for what threads that have not met the lost device yet still finish
_FLUSH_S = 2.0  # for clients to take the last answers
_MOST_WAITING = 4096  # connections that are still taken up; a flood must not keep the service from ending
_GRACE_S = 0.1  # who is about to send a request is told to go, where a closed connection would only be an error
_TURNS = 3  # of the event loop: read, handle and answer what the kernel already holds


async def depart(service: Service, front: Front, server: asyncio.Server, listener: socket.socket) -> None:
    """Take no new connections or requests, answer what was accepted, then close."""
    limits = service.settings.http
    service.leave()
    front.drain()
    if limits.pre_stop_s:
        await asyncio.sleep(limits.pre_stop_s)
    await _close_listener(front, server, listener)
    await _catch_up()
    try:
        await asyncio.wait_for(service.drain(), limits.drain_s)
    except TimeoutError:
        logging.getLogger("perfkit.server").error(
            "not drained within %g s; leaving the rest unanswered", limits.drain_s
        )
        logging.shutdown()
        os._exit(1)  # worker threads still hold requests; nothing but the end of the process ends them
    await _catch_up()  # the outbox delivers the last answers
    if front.connections:
        await asyncio.sleep(_GRACE_S)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(front.close_idle(), _FLUSH_S)
    if service.loss:
        await _turn_away(front)
        os._exit(1)  # asked to end, and some were not answered


async def abandon(front: Front, server: asyncio.Server) -> NoReturn:
    """The device is lost: answer 503 to what is in hand and end with the exit code that asks for a new start.

    The listener is let go and not closed: the supervisor holds it, and who connects now waits for the successor.
    """
    server.close()
    front.drain()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(front.close_idle(), _FINISH_S)
    await _turn_away(front)
    os._exit(DeviceLost.exit_code)  # threads may hang in the device for ever


async def _turn_away(front: Front) -> None:
    front.turn_away(LOST.reason, REJECTIONS[LOST.reason])
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(front.close_idle(), _FLUSH_S)
    logging.shutdown()


async def _close_listener(front: Front, server: asyncio.Server, listener: socket.socket) -> None:
    """Refuse from now on. Connections that the kernel has completed are taken up first: closing would reset them."""
    with listener.dup() as last:
        server.close()
        waiting = list(_take_all(last))  # in one go: whoever is served meanwhile may connect again
        with contextlib.suppress(OSError):
            last.shutdown(socket.SHUT_RDWR)  # a supervisor holds this listener too; closing ours would not end it
    loop = asyncio.get_running_loop()
    for connection in waiting:
        await loop.connect_accepted_socket(functools.partial(Connection, front), connection)


def _take_all(listener: socket.socket) -> Iterator[socket.socket]:
    with contextlib.suppress(BlockingIOError):
        for _ in range(_MOST_WAITING):
            connection, _address = listener.accept()
            connection.setblocking(False)
            yield connection


async def _catch_up() -> None:
    for _ in range(_TURNS):
        await asyncio.sleep(0)
