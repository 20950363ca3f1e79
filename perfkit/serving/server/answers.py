"""How does a handler answer a request: at once, later, or with a refusal?"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, NamedTuple

import orjson

from perfkit.errors import ConfigError
from perfkit.serving.scheduling.decisions import Rejected
from perfkit.serving.server.call import MalformedRequest
from perfkit.serving.server.connection import Request
from perfkit.serving.server.replies import JSON, error_body, response, retry_after

_log = logging.getLogger("perfkit.server")


class Reply(NamedTuple):
    """What a handler has to say; how it is framed depends on the connection."""

    status: int
    body: bytes
    content_type: bytes = JSON
    extra: bytes = b""


def later(request: Request, work: Any) -> None:
    """Answer when a coroutine has the bytes; what it raises becomes the answer."""

    async def finish() -> None:
        try:
            send(request, await work)
        except MalformedRequest as error:
            fail(request, error.status, error.code, str(error))
        except ConfigError as error:
            fail(request, 400, "settings", str(error))
        except Exception as error:
            _log.exception("cannot answer %s %s", request.method, request.target[:200])
            fail(request, 500, "internal", f"{type(error).__name__}: {error}")

    task = asyncio.get_running_loop().create_task(finish())
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)


_tasks: set[asyncio.Task[None]] = set()  # the loop itself keeps only weak references


def reply(request: Request, document: Any) -> None:
    """A good answer of JSON."""
    send(request, Reply(200, orjson.dumps(document)))


def fail(request: Request, status: int, code: str, message: str, extra: bytes = b"") -> None:
    """A refusal, in the words of the protocol that the path belongs to."""
    send(request, Reply(status, error_body(code, message, request.target), extra=extra))


def send(request: Request, answer: Reply) -> None:
    """Any answer."""
    # An answer to HEAD has no body; closing keeps the client from taking ours for the next answer.
    closes = not request.keeps_alive or request.method == b"HEAD"
    request.connection.answer(response(*answer, closes=closes), closes=closes)


def decline(request: Request, why: Rejected) -> None:
    """Not now: with the reason and the time to come back."""
    fail(request, 503, why.reason, "the service takes no requests at present", retry_after(why.retry_after_s))
