"""How does a server process come to be ready, and how does it end without losing a request?

From settings to a ready line on stdout, and from SIGTERM to a drained exit. `perfkit serve` runs it in
the foreground; `perfkit.launch` starts it as a child with a spec in JSON.
"""

from __future__ import annotations

import asyncio
import dataclasses
import errno
import functools
import gc
import ipaddress
import json
import logging
import os
import signal
import socket
import sys

import uvloop

from perfkit import fields
from perfkit.errors import ConfigError, EnvironmentLacks, PerfkitError, TargetFailed
from perfkit.serving.server.cold import ColdFront
from perfkit.serving.server.connection import Connection, Front
from perfkit.serving.server.defaults import open_device
from perfkit.serving.server.departure import depart
from perfkit.serving.server.registry import create_model
from perfkit.serving.server.replies import DATE
from perfkit.serving.server.routes import Router, control_routes, service_routes
from perfkit.serving.server.service import Service
from perfkit.serving.server.stages import describe
from perfkit.settings import HttpSettings, ServerSettings

_BACKLOG = 1024
_LAST_PORT = 65535
_SWEEP_S = 1.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ServerSpec:
    """Where and how the process serves. Port 0 picks a free one."""

    settings: ServerSettings
    host: str = "127.0.0.1"
    port: int = 0
    token: str | None = None
    cpus: tuple[int, ...] | None = None


def read_spec(text: str) -> ServerSpec:
    """A spec from the JSON that `launch` passes."""
    values = json.loads(text)
    settings = fields.from_nested(ServerSettings, values.pop("settings"))
    cpus = values.pop("cpus", None)
    return ServerSpec(settings=settings, cpus=tuple(cpus) if cpus else None, **values)


def serve(spec: ServerSpec) -> None:
    """Serve until SIGTERM, SIGINT or POST /shutdown, then drain. Raises PerfkitError when it cannot start."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    check_exposure(spec.host, spec.token)
    listener = _listen(spec.host, spec.port)
    control = _listen("127.0.0.1", 0)
    if spec.cpus:
        os.sched_setaffinity(0, spec.cpus)
    uvloop.run(_serve(spec, listener, control))


def check_exposure(host: str, token: str | None) -> None:
    """Beyond loopback only with a token; raises ConfigError."""
    try:
        is_loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback and not token:
        raise ConfigError(
            f"host {host} is beyond loopback and no token is set; "
            "set PERFKIT_TOKEN (or --token-env NAME) or use 127.0.0.1"
        )


def _listen(host: str, port: int) -> socket.socket:
    if not 0 <= port <= _LAST_PORT:
        raise ConfigError(f"port is {port}; it takes 0 (any free one) to {_LAST_PORT}")
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise EnvironmentLacks(f"port {port} on {host} is in use; choose another, or 0 for any free one") from None
        raise EnvironmentLacks(f"cannot listen on {host}:{port}: {error.strerror}") from None
    return listener


async def _serve(spec: ServerSpec, listener: socket.socket, control: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signal_number, stopped.set)
    with ColdFront(listener, spec.settings.http, spec.token):
        service = await _load(spec.settings)
    fronts = [
        Front(spec.settings.http, Router(service_routes(service), spec.token).handle),
        Front(HttpSettings(), Router(control_routes(service, stopped.set)).handle),  # stays usable whatever is set
    ]
    service.front = fronts[0]
    servers = [
        await loop.create_server(functools.partial(Connection, front), sock=sock, backlog=_BACKLOG)
        for front, sock in zip(fronts, (listener, control), strict=True)
    ]
    sweeper = loop.create_task(_sweep(fronts))
    await service.start()
    gc.collect()
    gc.freeze()  # the model and the modules live as long as the process: no need to scan them again
    _announce(listener, control)
    await stopped.wait()
    await depart(service, fronts[0], servers[0], listener)
    sweeper.cancel()


async def _load(settings: ServerSettings) -> Service:
    # On the main thread on purpose: some libraries tie their thread pools to the thread that loads them.
    model = create_model(settings.model)
    device = open_device(settings)
    try:
        model.load(device, settings.seed)
    except PerfkitError:
        raise
    except Exception as error:
        kind = type(error).__name__
        raise TargetFailed(f"model {settings.model} cannot load: {kind}: {describe(error)}") from error
    device.prepare(settings.intra_op_threads)
    return Service(settings, model, device)


def _announce(listener: socket.socket, control: socket.socket) -> None:
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    ready = {
        "url": f"http://{shown}:{port}",
        "control_url": f"http://127.0.0.1:{control.getsockname()[1]}",
        "pid": os.getpid(),
    }
    print(json.dumps(ready), flush=True)


async def _sweep(fronts: list[Front]) -> None:
    while True:
        await asyncio.sleep(_SWEEP_S)
        DATE.renew()
        for front in fronts:
            front.sweep()


def main(text: str) -> int:
    """Run from a JSON spec; returns the exit code, with one line on stderr when it is not 0."""
    try:
        serve(read_spec(text))
    except PerfkitError as error:
        print(f"perfkit: {error}", file=sys.stderr, flush=True)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
