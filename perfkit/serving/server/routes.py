"""Which path leads where? The service port and the control port, each a small table."""

from __future__ import annotations

import asyncio
import functools
import hmac
import logging
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import parse_qs

import orjson

from perfkit import fields
from perfkit.errors import ConfigError
from perfkit.serving.scheduling.decisions import Rejected
from perfkit.serving.server import metrics
from perfkit.serving.server.call import MalformedRequest
from perfkit.serving.server.connection import Request
from perfkit.serving.server.ledger_export import ARROW, export
from perfkit.serving.server.plain import PlainCall, read_document
from perfkit.serving.server.predict import Prediction
from perfkit.serving.server.replies import JSON, error_body, header_lines, response, retry_after
from perfkit.serving.server.service import STARTING, Service
from perfkit.settings import ServerSettings

_MOST_DIGITS = 18  # of a number that fits 64 bits
_log = logging.getLogger("perfkit.server")

Handler = Callable[[Request], None]
Routes = dict[bytes, dict[bytes, Handler]]


class Router:
    """Finds the handler of a request; answers 401, 403, 404 and 405 itself.

    Without a token only loopback is served, and then only what names loopback: a web page that a
    browser on this machine shows can reach the port too, under its own name or from its own origin.
    """

    def __init__(self, routes: Routes, token: str | None = None) -> None:
        self._routes = routes
        self._wanted = f"Bearer {token}".encode() if token else None

    def handle(self, request: Request) -> None:
        """Answer the request, now or later."""
        path = request.target.partition(b"?")[0]
        methods = self._routes.get(path)
        headers = request.headers
        if self._wanted:
            if not hmac.compare_digest(headers.get(b"authorization", b""), self._wanted):
                _fail(request, 401, "token", "send the header Authorization: Bearer <token>")
                return
        elif not _is_loopback(headers.get(b"host", b"localhost")) or not _is_from_loopback(headers):
            _fail(request, 403, "host", "without a token only requests to and from this machine's own names are served")
            return
        if methods is None:
            known = ", ".join(sorted(known.decode() for known in self._routes))
            _fail(request, 404, "not_found", f"no such path here; known: {known}")
        elif request.method not in methods:
            allowed = ", ".join(method.decode() for method in methods)
            _fail(request, 405, "method", f"this path takes {allowed}", header_lines({"allow": allowed}))
        else:
            methods[request.method](request)


@functools.lru_cache(maxsize=64)  # a client sends the same one with every request
def _is_loopback(authority: bytes) -> bool:
    """Whether `host[:port]`, as the headers Host and Origin write it, names this machine's loopback."""
    host = authority.rpartition(b":")[0] if authority[-1:] != b"]" and b":" in authority else authority
    return host in _LOOPBACK or (host.startswith(b"127.") and host.replace(b".", b"").isdigit())


def _is_from_loopback(headers: dict[bytes, bytes]) -> bool:
    """False when a browser says that a page from elsewhere sent the request."""
    return b"origin" not in headers or _is_loopback(headers[b"origin"].partition(b"//")[2])


_LOOPBACK = (b"127.0.0.1", b"localhost", b"[::1]")


def service_routes(service: Service) -> Routes:
    """What the service port answers."""

    def predict(request: Request) -> None:
        Prediction(service, request).begin(PlainCall)

    def ready(request: Request) -> None:
        if (why := service.unready()) is None:
            _reply(request, {"ready": True})
        else:
            _decline(request, why)

    def stats(request: Request) -> None:
        _reply(request, service.stats())

    def prometheus(request: Request) -> None:
        _send(request, Reply(200, metrics.render(service), metrics.CONTENT_TYPE))

    return {
        b"/predict": {b"POST": predict},
        b"/health/live": {b"GET": _say_live},
        b"/health/ready": {b"GET": ready},
        b"/stats": {b"GET": stats},
        b"/metrics": {b"GET": prometheus},
    }


def cold_routes() -> Routes:
    """What the service port answers before there is a service."""

    def starting(request: Request) -> None:
        _decline(request, STARTING)

    return {
        b"/predict": {b"POST": starting},
        b"/health/live": {b"GET": _say_live},
        b"/health/ready": {b"GET": starting},
    }


def _say_live(request: Request) -> None:
    _reply(request, {"live": True})


def _decline(request: Request, why: Rejected) -> None:
    _fail(request, 503, why.reason, "the service takes no requests at present", retry_after(why.retry_after_s))


def control_routes(service: Service, shutdown: Callable[[], None]) -> Routes:
    """What the control port answers: for whoever launched the server, on loopback only."""

    def read_settings(request: Request) -> None:
        _reply(request, fields.to_nested(service.settings))

    def change_settings(request: Request) -> None:
        _later(request, _patched(service, request))

    def ledger(request: Request) -> None:
        _later(request, asyncio.to_thread(_ledger, service, request))

    def gil_waits(request: Request) -> None:
        samples = service.sleeper.samples() if service.sleeper else []
        _reply(request, {"is_recording": service.sleeper is not None, "samples_ns": samples})

    def record_gil_waits(request: Request) -> None:
        service.record_gil_waits(request.method == b"POST")
        gil_waits(request)

    def stop(request: Request) -> None:
        _reply(request, {"shutting_down": True})
        shutdown()

    def stats(request: Request) -> None:
        _reply(request, service.stats())

    return {
        b"/settings": {b"GET": read_settings, b"PATCH": change_settings},
        b"/ledger": {b"GET": ledger},
        b"/gil-waits": {b"GET": gil_waits, b"POST": record_gil_waits, b"DELETE": record_gil_waits},
        b"/shutdown": {b"POST": stop},
        b"/stats": {b"GET": stats},
    }


class Reply(NamedTuple):
    """What a handler has to say; how it is framed depends on the connection."""

    status: int
    body: bytes
    content_type: bytes = JSON
    extra: bytes = b""


async def _patched(service: Service, request: Request) -> Reply:
    document = read_document(request)
    try:
        flat = fields.flatten(document)
    except RecursionError:
        raise MalformedRequest(400, "bad_shape", "the settings are nested too deep") from None
    known = {name for name, _, _ in fields.leaves(ServerSettings)}
    if unknown := sorted(set(flat) - known):
        raise MalformedRequest(400, "unknown_setting", f"unknown setting {unknown[0]}; GET /settings lists all")
    settings = await service.reconfigure(flat)
    return Reply(200, orjson.dumps(fields.to_nested(settings)))


def _ledger(service: Service, request: Request) -> Reply:
    query = parse_qs(request.target.partition(b"?")[2].decode("latin-1"))
    table = query.get("table", ["requests"])[0]
    since = query.get("since", ["0"])[0]
    if table not in ("requests", "batches"):
        raise MalformedRequest(400, "bad_table", f"table is {table!r}; it takes requests or batches")
    if not since.isdecimal() or len(since) > _MOST_DIGITS:
        raise MalformedRequest(400, "bad_since", f"since is {since!r}; it takes a row number, 0 or more")
    return Reply(200, export(getattr(service.books, table), int(since)), ARROW)


def _later(request: Request, work: Any) -> None:
    """Answer when a coroutine has the bytes; what it raises becomes the answer."""

    async def finish() -> None:
        try:
            _send(request, await work)
        except MalformedRequest as error:
            _fail(request, error.status, error.code, str(error))
        except ConfigError as error:
            _fail(request, 400, "settings", str(error))
        except Exception as error:
            _log.exception("cannot answer %s %s", request.method, request.target[:200])
            _fail(request, 500, "internal", f"{type(error).__name__}: {error}")

    task = asyncio.get_running_loop().create_task(finish())
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)


_tasks: set[asyncio.Task[None]] = set()  # the loop itself keeps only weak references


def _reply(request: Request, document: Any) -> None:
    _send(request, Reply(200, orjson.dumps(document)))


def _fail(request: Request, status: int, code: str, message: str, extra: bytes = b"") -> None:
    _send(request, Reply(status, error_body(code, message, request.target), extra=extra))


def _send(request: Request, reply: Reply) -> None:
    # An answer to HEAD has no body; closing keeps the client from taking ours for the next answer.
    closes = not request.keeps_alive or request.method == b"HEAD"
    request.connection.answer(response(*reply, closes=closes), closes=closes)
