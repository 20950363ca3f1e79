"""Which paths does the Open Inference Protocol have, and what does each one answer?

The server has one model in one version; every path that names another answers 404. What needs numpy
is imported when it is first asked for, so that a server of plain JSON does without.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import orjson

from perfkit.serving.server.answers import Reply, decline, fail, later, reply
from perfkit.serving.server.call import MalformedRequest
from perfkit.serving.server.connection import Request
from perfkit.serving.server.oip.metadata import (
    VERSION,
    model_config,
    model_metadata,
    repository_index,
    server_metadata,
)
from perfkit.serving.server.plain import read_document
from perfkit.serving.server.predict import Prediction
from perfkit.serving.server.router import Handler, Routes
from perfkit.serving.server.service import STARTING, Service

if TYPE_CHECKING:
    from perfkit.serving.server.oip.statistics import Statistics

_MODEL = b"/v2/models/{name}"
_VERSION = b"/v2/models/{name}/versions/{version}"


class V2:
    """The protocol's answers for one service. For the event loop's thread."""

    def __init__(self, service: Service) -> None:
        self._service = service

    @functools.cached_property
    def _statistics(self) -> Statistics:
        from perfkit.serving.server.oip.statistics import Statistics

        books = self._service.books
        return Statistics(books.requests, books.batches, self._service.clock)

    def routes(self) -> Routes:
        """Every path below /v2."""
        of_model: dict[bytes, tuple[bytes, Callable[[Request], None]]] = {
            b"": (b"GET", self._metadata),
            b"/ready": (b"GET", self._model_ready),
            b"/config": (b"GET", self._config),
            b"/stats": (b"GET", self._stats),
            b"/infer": (b"POST", self._infer),
        }
        return {
            b"/v2": {b"GET": _describe_server},
            b"/v2/health/live": {b"GET": _say_live},
            b"/v2/health/ready": {b"GET": self._server_ready},
            b"/v2/models/stats": {b"GET": self._stats},
            b"/v2/repository/index": {b"POST": self._index},
            **{
                base + end: {method: self._of_model(answer)}
                for base in (_MODEL, _VERSION)
                for end, (method, answer) in of_model.items()
            },
        }

    def _of_model(self, answer: Callable[[Request], None]) -> Handler:
        """A handler that answers only when the path names the model and version that are served."""

        def answer_or_404(request: Request, name: str, version: str = VERSION) -> None:
            served = self._service.settings.model
            if (name, version) == (served, VERSION):
                answer(request)
            else:
                came = f"no model {name[:200]!r} in version {version[:20]!r}"
                fail(request, 404, "unknown_model", f"{came}; this server has {served!r} in version {VERSION!r}")

        return answer_or_404

    def _infer(self, request: Request) -> None:
        from perfkit.serving.server.oip.request import read_infer

        Prediction(self._service, request).begin(read_infer)

    def _server_ready(self, request: Request) -> None:
        self._reply_if_ready(request, {"ready": True})

    def _model_ready(self, request: Request) -> None:
        self._reply_if_ready(request, {"name": self._service.settings.model, "ready": True})

    def _reply_if_ready(self, request: Request, document: Any) -> None:
        if (why := self._service.unready()) is None:
            reply(request, document)
        else:
            decline(request, why)

    def _metadata(self, request: Request) -> None:
        reply(request, model_metadata(self._service))

    def _config(self, request: Request) -> None:
        reply(request, model_config(self._service))

    def _index(self, request: Request) -> None:
        try:
            wants_ready = read_document(request).get("ready", False) if request.body else False
        except MalformedRequest as error:
            fail(request, error.status, error.code, str(error))
            return
        if not isinstance(wants_ready, bool):
            fail(request, 400, "bad_request", "ready must be true (the models that are ready) or false (all)")
            return
        reply(request, [one for one in repository_index(self._service) if not wants_ready or one["state"] == "READY"])

    def _stats(self, request: Request) -> None:
        later(request, asyncio.to_thread(_statistics_reply, self._statistics, self._service))


def v2_routes(service: Service) -> Routes:
    """What the service port answers below /v2."""
    return V2(service).routes()


def v2_cold_routes() -> Routes:
    """The same paths before there is a service: alive, and not ready for anything else."""

    def starting(request: Request, *_: str) -> None:
        decline(request, STARTING)

    ends = (b"/ready", b"/infer")
    probes = {
        base + end: {b"POST" if end == b"/infer" else b"GET": starting} for base in (_MODEL, _VERSION) for end in ends
    }
    return {
        b"/v2": {b"GET": _describe_server},
        b"/v2/health/live": {b"GET": _say_live},
        b"/v2/health/ready": {b"GET": starting},
        **probes,
    }


def _describe_server(request: Request) -> None:
    reply(request, server_metadata())


def _say_live(request: Request) -> None:
    reply(request, {"live": True})


def _statistics_reply(statistics: Statistics, service: Service) -> Reply:
    return Reply(200, orjson.dumps(statistics.document(service)))
