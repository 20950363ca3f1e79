"""Which handler does a request belong to? By path and method, after the token or the host was checked."""

from __future__ import annotations

import functools
import hmac
from collections.abc import Callable
from urllib.parse import unquote_to_bytes

from perfkit.serving.server.answers import fail
from perfkit.serving.server.connection import Request
from perfkit.serving.server.replies import header_lines

Handler = Callable[..., None]
"""Takes the request and the text in each `{…}` of its path."""
Methods = dict[bytes, Handler]
Routes = dict[bytes, Methods]
"""Paths, in which a segment `{…}` stands for any text, and what each of their methods does."""


class Paths:
    """Finds a path in a table of routes. One without `{…}` wins over one with."""

    def __init__(self, routes: Routes) -> None:
        self._whole = {path: methods for path, methods in routes.items() if b"{" not in path}
        self._patterns = [(path.split(b"/"), methods) for path, methods in routes.items() if b"{" in path]

    def find(self, path: bytes) -> tuple[Methods | None, tuple[str, ...]]:
        """The methods of a path, None for an unknown one, and the texts in its `{…}`."""
        methods = self._whole.get(path)
        if methods is not None or not self._patterns:
            return methods, ()
        segments = path.split(b"/")
        for pattern, methods in self._patterns:
            if (texts := _texts(pattern, segments)) is not None:
                return methods, texts
        return None, ()


def _texts(pattern: list[bytes], segments: list[bytes]) -> tuple[str, ...] | None:
    if len(pattern) != len(segments):
        return None
    texts = []
    for wanted, segment in zip(pattern, segments, strict=True):
        if wanted.startswith(b"{"):
            texts.append(unquote_to_bytes(segment).decode("utf-8", "replace"))
        elif wanted != segment:
            return None
    return tuple(texts)


class Router:
    """Finds the handler of a request; answers 401, 403, 404 and 405 itself.

    Without a token only loopback is served, and then only what names loopback: a web page that a
    browser on this machine shows can reach the port too, under its own name or from its own origin.
    """

    def __init__(self, routes: Routes, token: str | None = None) -> None:
        self._paths = Paths(routes)
        self._known = ", ".join(sorted(path.decode() for path in routes))
        self._wanted = f"Bearer {token}".encode() if token else None

    def handle(self, request: Request) -> None:
        """Answer the request, now or later."""
        path = request.target.partition(b"?")[0]
        methods, texts = self._paths.find(path)
        headers = request.headers
        if self._wanted:
            if not hmac.compare_digest(headers.get(b"authorization", b""), self._wanted):
                fail(request, 401, "token", "send the header Authorization: Bearer <token>")
                return
        elif not _is_loopback(headers.get(b"host", b"localhost")) or not _is_from_loopback(headers):
            fail(request, 403, "host", "without a token only requests to and from this machine's own names are served")
            return
        if methods is None:
            fail(request, 404, "not_found", f"no such path here; known: {self._known}")
        elif request.method not in methods:
            allowed = ", ".join(method.decode() for method in methods)
            fail(request, 405, "method", f"this path takes {allowed}", header_lines({"allow": allowed}))
        else:
            methods[request.method](request, *texts)


@functools.lru_cache(maxsize=64)  # a client sends the same one with every request
def _is_loopback(authority: bytes) -> bool:
    """Whether `host[:port]`, as the headers Host and Origin write it, names this machine's loopback."""
    host = authority.rpartition(b":")[0] if authority[-1:] != b"]" and b":" in authority else authority
    return host in _LOOPBACK or (host.startswith(b"127.") and host.replace(b".", b"").isdigit())


def _is_from_loopback(headers: dict[bytes, bytes]) -> bool:
    """False when a browser says that a page from elsewhere sent the request."""
    return b"origin" not in headers or _is_loopback(headers[b"origin"].partition(b"//")[2])


_LOOPBACK = (b"127.0.0.1", b"localhost", b"[::1]")
