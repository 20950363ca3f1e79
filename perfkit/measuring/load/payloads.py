"""What is sent? Request bodies from a file of JSON lines, each built into raw HTTP bytes once."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from perfkit.errors import ConfigError, EnvironmentLacks
from perfkit.resources import data_path

if TYPE_CHECKING:
    from perfkit.measuring.load.loops import Load
    from perfkit.measuring.load.target import Target


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RequestParts:
    """One request's bytes around the number of its Perfkit-Id header."""

    before_id: bytes
    after_id: bytes


def read_payloads(path: Path) -> list[bytes]:
    """The bodies of a file with one JSON document a line; raises ConfigError that names the line."""
    try:
        lines = path.read_bytes().rstrip().splitlines()
    except OSError as error:
        raise ConfigError(
            f"cannot read payload file {path}: {error.strerror}; give a file with one JSON document a line"
        ) from error
    if not lines:
        raise ConfigError(f"payload file {path} is empty; give one JSON document a line")
    for number, line in enumerate(lines, 1):
        _check_line(path, number, line)
    return lines


def _check_line(path: Path, number: int, line: bytes) -> None:
    if not line.strip():
        raise ConfigError(f"line {number} of payload file {path} is empty; each line takes one JSON document")
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise ConfigError(
            f"line {number} of payload file {path} is not JSON ({error}); each line takes one JSON document"
        ) from error


def find_payload_file(name: str) -> Path:
    """A file of the user's, else one of ours under data/; raises ConfigError."""
    path = Path(name)
    if path.exists():
        return path
    try:
        return data_path(*path.parts)
    except EnvironmentLacks:
        raise ConfigError(
            f"payloads is {name!r}, which is no file; give a file of request bodies, one JSON document a line"
        ) from None


def build_request(target: Target, body: bytes, load: Load, lane: str | None = None) -> RequestParts:
    """The POST of one body under a load, split where the request's number goes; a lane wins over the load's."""
    head = [
        f"POST {target.path} HTTP/1.1",
        f"Host: {target.authority}",
        "Content-Type: application/json",
        "Accept: application/json",
        f"Content-Length: {len(body)}",
    ]
    if not load.keep_alive:
        head.append("Connection: close")
    if lane or load.lane:
        head.append(f"Perfkit-Lane: {lane or load.lane}")
    if load.batch == "off":
        head.append("Perfkit-Batch: off")
    return RequestParts(before_id="\r\n".join([*head, "Perfkit-Id: "]).encode("ascii"), after_id=b"\r\n\r\n" + body)
