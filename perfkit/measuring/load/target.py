"""Where does the load go, and may it go there?

perfkit measures services of the person who runs it. An address beyond this host and its private
network, or more than a gentle rate to another host, needs that person's explicit word.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import socket
from typing import Any
from urllib.parse import urlsplit

from perfkit.errors import ConfigError, TargetFailed
from perfkit.measuring.load.loops import Load, OpenLoop
from perfkit.measuring.load.shape import peak_level

MAX_UNASKED_RPS = 100.0  # to another host, unless remote load is allowed explicitly


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One HTTP endpoint: as written in the URL, and as the address that gets connected to."""

    host: str
    port: int
    path: str
    family: int
    address: tuple[Any, ...]

    @property
    def authority(self) -> str:
        """The value of the Host header."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def find_target(url: str) -> Target:
    """Parse and resolve a URL; raises ConfigError for a bad one, TargetFailed for an unknown host."""
    host, port, path = _parse(url)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise TargetFailed(f"cannot resolve host {host} of {url} ({error}); check the name") from error
    # A name such as localhost may stand for both families; servers listen on IPv4 more often.
    family, _, _, _, address = min(found, key=lambda entry: entry[0] != socket.AF_INET)
    return Target(host=host, port=port, path=path, family=int(family), address=address)


def _parse(url: str) -> tuple[str, int, str]:
    wanted = "it takes http://HOST:PORT/PATH"
    try:
        parts = urlsplit(url)
        port = parts.port or 80
    except ValueError as error:
        raise ConfigError(f"url is {url!r} ({error}); {wanted}") from None
    if parts.scheme != "http" or not parts.hostname or not parts.hostname.isascii():
        raise ConfigError(f"url is {url!r}; {wanted} (plain http)")
    if parts.username or parts.fragment:
        raise ConfigError(f"url is {url!r}; {wanted}, without user or fragment")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if not (path.isascii() and path.isprintable()) or " " in path:
        raise ConfigError(f"the path of url {url!r} holds characters that need escaping; {wanted} in plain ASCII")
    return parts.hostname, port, path


def check_permission(target: Target, load: Load, allow_remote: bool) -> None:
    """Raise ConfigError when this load may not go to this address unasked."""
    address = ipaddress.ip_address(target.address[0].partition("%")[0])
    if allow_remote or address.is_loopback:
        return
    if not address.is_private or address.is_link_local:
        raise ConfigError(
            f"{target.host} ({address}) is outside this host and its private network; "
            "load goes there only with --set allow_remote=true, and only if it is yours to load"
        )
    peak_rps = _peak_rps(load)
    if peak_rps > MAX_UNASKED_RPS:
        raise ConfigError(
            f"{target.host} ({address}) is another host, and the load may exceed {MAX_UNASKED_RPS:g} requests "
            "per second; lower the rate, add think time, or --set allow_remote=true if it is yours to load"
        )


def _peak_rps(load: Load) -> float:
    """A replay's rate is not known before its file is read."""
    if isinstance(load, OpenLoop):
        factor = {"bursty": load.bursts.burst_factor, "replay": float("inf")}.get(load.arrivals, 1.0)
        return peak_level(load.steps) * factor
    return load.peak_users / load.think_time_s if load.think_time_s else float("inf")
