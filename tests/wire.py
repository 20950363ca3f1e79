"""How does a test speak to a server byte by byte, and read what comes back?"""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

PATIENCE_S = 30.0


class Answer(NamedTuple):
    """One answer as it came; header names in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, read as JSON."""
        return json.loads(self.body)

    @property
    def code(self) -> tuple[int, str]:
        """Status and error code."""
        return self.status, self.json["error"]["code"]


class Wire:
    """A raw client: sends bytes as they are, reads whole answers."""

    def __init__(self, port: int, timeout_s: float = PATIENCE_S, address: str = "127.0.0.1") -> None:
        self.socket = socket.create_connection((address, port), timeout=timeout_s)
        self._reader = self.socket.makefile("rb")

    def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        self.socket.sendall(data)

    def get(self, path: str, *headers: str, method: str = "GET", host: bool = True) -> None:
        """Send a request without a body and leave its answer for later."""
        self.send(_head(f"{method} {path}", headers, host))

    def post(self, document: Any, *headers: str, path: str = "/predict", host: bool = True) -> None:
        """Send a document and leave the answer for later."""
        body = json.dumps(document).encode()
        facts = ("Content-Type: application/json", f"Content-Length: {len(body)}")
        self.send(_head(f"POST {path}", (*headers, *facts), host) + body)

    def ask(self, path: str, document: Any = None, *headers: str, host: bool = True) -> Answer:
        """One request and its answer: a POST when there is a document, else a GET."""
        if document is None:
            self.get(path, *headers, host=host)
        else:
            self.post(document, *headers, path=path, host=host)
        return self.answer()

    def answer(self) -> Answer:
        """The next answer; fails when the server has closed before."""
        status_line = self._reader.readline()
        assert status_line, "the connection was closed before an answer"
        headers = {}
        while (line := self._reader.readline().strip()) != b"":
            name, _, value = line.decode().partition(": ")
            headers[name.lower()] = value
        body = self._reader.read(int(headers.get("content-length", 0)))
        return Answer(int(status_line.split()[1]), headers, body)

    def rest(self) -> bytes:
        """Everything until the server closes."""
        return self._reader.read()

    def is_at_end(self) -> bool:
        """Whether the server has closed its side; blocks until it sends or closes."""
        return self._reader.read(1) == b""

    def close(self) -> None:
        """Hang up."""
        self._reader.close()
        self.socket.close()


def _head(first: str, headers: tuple[str, ...], host: bool) -> bytes:
    lines = [f"{first} HTTP/1.1", *(["Host: localhost"] if host else []), *headers, "", ""]
    return "\r\n".join(lines).encode()


@contextlib.contextmanager
def dialling() -> Iterator[Callable[..., Wire]]:
    """Opens wires, with the arguments of `Wire`, and closes them at the end of the block."""
    with contextlib.ExitStack() as ends:

        def connect(*where: Any, **more: Any) -> Wire:
            wire = Wire(*where, **more)
            ends.callback(wire.close)
            return wire

        yield connect
