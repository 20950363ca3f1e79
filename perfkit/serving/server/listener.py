"""On which sockets may a server listen, and how are they opened?"""

from __future__ import annotations

import errno
import ipaddress
import socket

from perfkit.errors import ConfigError, EnvironmentLacks

BACKLOG = 1024
_LAST_PORT = 65535


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


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 picks a free one. Raises ConfigError or EnvironmentLacks with the reason."""
    if not 0 <= port <= _LAST_PORT:
        raise ConfigError(f"port is {port}; it takes 0 (any free one) to {_LAST_PORT}")
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise EnvironmentLacks(f"port {port} on {host} is in use; choose another, or 0 for any free one") from None
        raise EnvironmentLacks(f"cannot listen on {host}:{port}: {error.strerror}") from None
    return listener


def adopt(descriptor: int) -> socket.socket:
    """A listening socket that the parent opened; children of this process do not get it."""
    listener = socket.socket(fileno=descriptor)
    listener.set_inheritable(False)
    return listener
