"""How does perfkit talk to a service outside the measured load? Small blocking HTTP calls, JSON in and out."""

from __future__ import annotations

import http.client
import json
import socket
from typing import Any
from urllib.parse import urlsplit

from perfkit.errors import ConfigError, TargetFailed

_TIMEOUT_S = 60.0  # draining a pipeline of slow requests takes its time


class Endpoint:
    """One port of a service. Opens a connection per call, so any thread may use it."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self._host, self._port = _parse(url)
        self.url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def probe(self) -> None:
        """Raises TargetFailed unless something accepts connections there."""
        try:
            socket.create_connection((self._host, self._port), timeout=5.0).close()
        except OSError as error:
            why = error.strerror or type(error).__name__
            raise TargetFailed(f"nothing answers at {self.url} ({why}); is the service running?") from error

    def get(self, path: str) -> Any:
        """The JSON at a path; raises TargetFailed."""
        return json.loads(self.call("GET", path))

    def send(self, method: str, path: str, document: Any) -> Any:
        """Send a JSON document, get one back; raises ConfigError when the service refuses it, else TargetFailed."""
        return json.loads(self.call(method, path, json.dumps(document).encode()))

    def call(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """The answer's bytes; raises ConfigError on 400, TargetFailed on everything else that is not 2xx."""
        connection = http.client.HTTPConnection(self._host, self._port, timeout=_TIMEOUT_S)
        headers = self._headers | ({"Content-Type": "application/json"} if body else {})
        try:
            connection.request(method, path, body, headers)
            reply = connection.getresponse()
            data = reply.read()
        except (OSError, http.client.HTTPException) as error:
            why = getattr(error, "strerror", None) or type(error).__name__
            raise TargetFailed(f"{self.url} does not answer ({why}); is the service running?") from error
        finally:
            connection.close()
        if reply.status >= 300:
            raise _refusal(f"{method} {self.url}{path}", reply.status, data)
        return data


def _parse(url: str) -> tuple[str, int]:
    wanted = "it takes http://HOST:PORT, with or without a path"
    try:
        parts = urlsplit(url)
        port = parts.port or 80
    except ValueError as error:
        raise ConfigError(f"url is {url!r} ({error}); {wanted}") from None
    if parts.scheme != "http" or not parts.hostname:
        raise ConfigError(f"url is {url!r}; {wanted}")
    return parts.hostname, port


def _refusal(what: str, status: int, data: bytes) -> ConfigError | TargetFailed:
    try:
        message = json.loads(data)["error"]["message"]
    except (ValueError, KeyError, TypeError):
        message = data[:200].decode("utf-8", "replace")
    return ConfigError(message) if status == 400 else TargetFailed(f"{what} answered {status}: {message}")
