"""Where and how does a server process serve? What whoever starts it tells it, as one record and as JSON.

A supervisor and its server share the JSON as a file that has no name: nobody else can read it, and what
the server writes there, its present settings, is what the next one starts with.
"""

from __future__ import annotations

import dataclasses
import json
import os

from perfkit import fields
from perfkit.settings.server import ServerSettings


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ServerSpec:
    """One server process. Port 0 picks a free one."""

    settings: ServerSettings
    host: str = "127.0.0.1"
    port: int = 0
    token: str | None = None
    cpus: tuple[int, ...] | None = None
    listener_fds: tuple[int, int] | None = None  # of the service and the control port, when a supervisor holds them
    shared_fd: int | None = None  # of the file that the supervisor shares this spec by
    starts: int = 1  # how often the supervisor has started it, this time included


def read_spec(text: str) -> ServerSpec:
    """A spec from its JSON; raises ConfigError for settings that are wrong."""
    values = json.loads(text)
    settings = fields.from_nested(ServerSettings, values.pop("settings"))
    for name in ("cpus", "listener_fds"):
        if values.get(name) is not None:
            values[name] = tuple(values[name])
    return ServerSpec(settings=settings, **values)


def write_spec(spec: ServerSpec) -> str:
    """The JSON that `read_spec` reads."""
    return json.dumps(dataclasses.asdict(spec))


def share_spec(spec: ServerSpec) -> int:
    """A new nameless file with the spec; its descriptor, to be passed on."""
    descriptor = os.memfd_create("perfkit-spec")
    rewrite_spec(descriptor, dataclasses.replace(spec, shared_fd=descriptor))
    return descriptor


def rewrite_spec(descriptor: int, spec: ServerSpec) -> None:
    """Put another spec into a shared file."""
    data = write_spec(spec).encode()
    os.pwrite(descriptor, data, 0)
    os.ftruncate(descriptor, len(data))


def read_shared_spec(descriptor: int) -> ServerSpec:
    """The spec in a shared file."""
    return read_spec(os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode())
