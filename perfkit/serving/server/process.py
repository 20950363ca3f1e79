"""How does a server process come to be ready, and how does it end without losing a request?

From settings to a ready line on stdout, and from SIGTERM to a drained exit. `perfkit serve` and
`perfkit.launch` start it under a supervisor, which hands it the sockets and a spec in JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import gc
import json
import logging
import os
import signal
import socket
import sys

import uvloop

from perfkit.clock import NS_PER_S, REAL_CLOCK
from perfkit.errors import PerfkitError, TargetFailed
from perfkit.serving.server.cold import ColdFront
from perfkit.serving.server.connection import Connection
from perfkit.serving.server.defaults import open_device
from perfkit.serving.server.departure import abandon, depart
from perfkit.serving.server.executed import at_level
from perfkit.serving.server.front import Front
from perfkit.serving.server.listener import BACKLOG, adopt, check_exposure, listen
from perfkit.serving.server.registry import create_model
from perfkit.serving.server.replies import DATE
from perfkit.serving.server.router import Router
from perfkit.serving.server.routes import control_routes, service_routes
from perfkit.serving.server.service import Service
from perfkit.serving.server.spec import ServerSpec, read_shared_spec, read_spec, rewrite_spec
from perfkit.serving.server.stages import describe
from perfkit.settings.server import ServerSettings
from perfkit.settings.surroundings import HttpSettings

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_SWEEP_S = 0.25  # how much later than its deadline a connection may be cut off


def serve(spec: ServerSpec) -> None:
    """Serve until SIGTERM, SIGINT or POST /shutdown, then drain; a lost device ends the process with exit code 70.

    The present settings are kept in the shared spec, where there is one. Raises PerfkitError when it cannot start.
    """
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    check_exposure(spec.host, spec.token)
    if spec.listener_fds is not None:
        listener, control = map(adopt, spec.listener_fds)
    else:
        listener, control = listen(spec.host, spec.port), listen("127.0.0.1", 0)
    if spec.cpus:
        os.sched_setaffinity(0, spec.cpus)
    for number in _SIGNALS:
        signal.signal(number, lambda *_: os._exit(0))  # until it has taken requests there is nothing to wait for
    uvloop.run(_serve(spec, listener, control))


async def _serve(spec: ServerSpec, listener: socket.socket, control: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    with ColdFront(listener, spec.settings.http, spec.token):
        service = await _load(spec.settings)
    service.starts = spec.starts
    fronts = [
        Front(spec.settings.http, Router(service_routes(service), spec.token).handle),
        Front(HttpSettings(), Router(control_routes(service, stopped.set)).handle),  # stays usable whatever is set
    ]
    service.front = fronts[0]
    service.on_loss = stopped.set
    if spec.shared_fd is not None:
        service.on_change = functools.partial(_keep_settings, spec, spec.shared_fd)
    servers = [
        await loop.create_server(functools.partial(Connection, front), sock=sock, backlog=BACKLOG)
        for front, sock in zip(fronts, (listener, control), strict=True)
    ]
    sweeper = loop.create_task(_sweep(fronts))
    await service.start()
    for number in _SIGNALS:
        loop.add_signal_handler(number, stopped.set)
    gc.collect()
    gc.freeze()  # the model and the modules live as long as the process: no need to scan them again
    _announce(listener, control)
    await stopped.wait()
    if service.loss:
        await abandon(fronts[0], servers[0])
    await depart(service, fronts[0], servers[0], listener)
    service.close()
    sweeper.cancel()


async def _load(settings: ServerSettings) -> Service:
    # On the main thread on purpose: some libraries tie their thread pools to the thread that loads them.
    model = create_model(settings.model)
    device = open_device(settings, model)
    began_ns = REAL_CLOCK.now_ns()
    try:
        with device.loading():
            model.load(device, settings.seed)
    except PerfkitError:
        raise
    except Exception as error:
        kind = type(error).__name__
        raise TargetFailed(f"model {settings.model} cannot load: {kind}: {describe(error)}") from error
    device.prepare(settings.intra_op_threads)
    service = Service(settings, at_level(model, settings, device), device)
    service.load_s = (REAL_CLOCK.now_ns() - began_ns) / NS_PER_S
    return service


def _keep_settings(spec: ServerSpec, shared_fd: int, settings: ServerSettings) -> None:
    rewrite_spec(shared_fd, dataclasses.replace(spec, settings=settings))


def _announce(listener: socket.socket, control: socket.socket) -> None:
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    ready = {
        "url": f"http://{shown}:{port}",
        "control_url": f"http://127.0.0.1:{control.getsockname()[1]}",
        "pid": os.getpid(),
    }
    with contextlib.suppress(BrokenPipeError):  # after a restart there may be no reader any more
        print(json.dumps(ready), flush=True)


async def _sweep(fronts: list[Front]) -> None:
    while True:
        await asyncio.sleep(_SWEEP_S)
        DATE.renew()
        for front in fronts:
            front.sweep()


def main(text: str) -> int:
    """Run from a JSON spec, or from the descriptor of one that a supervisor shares; returns the exit code.

    When that is not 0, there is one line on stderr.
    """
    try:
        serve(read_shared_spec(int(text)) if text.isdecimal() else read_spec(text))
    except PerfkitError as error:
        print(f"perfkit: {error}", file=sys.stderr, flush=True)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
