"""Which path leads where? The service port and the control port, each a small table."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from urllib.parse import parse_qs

import orjson

from perfkit import fields
from perfkit.serving.server import metrics, openapi
from perfkit.serving.server.answers import Reply, decline, later, reply, send
from perfkit.serving.server.call import MalformedRequest
from perfkit.serving.server.connection import Request
from perfkit.serving.server.json_signature import signature_of
from perfkit.serving.server.ledger_export import ARROW, export
from perfkit.serving.server.oip.routes import v2_cold_routes, v2_routes
from perfkit.serving.server.plain import PlainCall, read_document
from perfkit.serving.server.predict import Prediction
from perfkit.serving.server.router import Routes
from perfkit.serving.server.service import STARTING, Service
from perfkit.settings.server import ServerSettings

_MOST_DIGITS = 18  # of a number that fits 64 bits


def service_routes(service: Service) -> Routes:
    """What the service port answers."""

    def predict(request: Request) -> None:
        Prediction(service, request).begin(PlainCall)

    def ready(request: Request) -> None:
        if (why := service.unready()) is None:
            reply(request, {"ready": True})
        else:
            decline(request, why)

    def stats(request: Request) -> None:
        reply(request, service.stats())

    def prometheus(request: Request) -> None:
        send(request, Reply(200, metrics.render(service), metrics.CONTENT_TYPE))

    def describe(request: Request) -> None:
        reply(request, openapi.document(service.settings.model, signature_of(service.model)))

    return {
        b"/openapi.json": {b"GET": describe},
        b"/predict": {b"POST": predict},
        b"/health/live": {b"GET": _say_live},
        b"/health/ready": {b"GET": ready},
        b"/stats": {b"GET": stats},
        b"/metrics": {b"GET": prometheus},
        **v2_routes(service),
    }


def cold_routes() -> Routes:
    """What the service port answers before there is a service."""

    def starting(request: Request) -> None:
        decline(request, STARTING)

    return {
        b"/predict": {b"POST": starting},
        b"/health/live": {b"GET": _say_live},
        b"/health/ready": {b"GET": starting},
        **v2_cold_routes(),
    }


def _say_live(request: Request) -> None:
    reply(request, {"live": True})


def control_routes(service: Service, shutdown: Callable[[], None]) -> Routes:
    """What the control port answers: for whoever launched the server, on loopback only."""

    def read_settings(request: Request) -> None:
        reply(request, fields.to_nested(service.settings))

    def change_settings(request: Request) -> None:
        later(request, _patched(service, request))

    def ledger(request: Request) -> None:
        later(request, asyncio.to_thread(_ledger, service, request))

    def gil_waits(request: Request) -> None:
        samples = service.sleeper.samples() if service.sleeper else []
        reply(request, {"is_recording": service.sleeper is not None, "samples_ns": samples})

    def record_gil_waits(request: Request) -> None:
        service.record_gil_waits(request.method == b"POST")
        gil_waits(request)

    def stop(request: Request) -> None:
        reply(request, {"shutting_down": True})
        shutdown()

    def stats(request: Request) -> None:
        reply(request, service.stats())

    return {
        b"/settings": {b"GET": read_settings, b"PATCH": change_settings},
        b"/ledger": {b"GET": ledger},
        b"/gil-waits": {b"GET": gil_waits, b"POST": record_gil_waits, b"DELETE": record_gil_waits},
        b"/shutdown": {b"POST": stop},
        b"/stats": {b"GET": stats},
    }


async def _patched(service: Service, request: Request) -> Reply:
    document = read_document(request)
    try:
        flat = fields.flatten(document)
    except RecursionError:
        raise MalformedRequest(400, "bad_shape", "the settings are nested too deep") from None
    if unknown := fields.unknown(flat, ServerSettings):
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
