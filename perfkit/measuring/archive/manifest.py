"""What does a run say about itself? The record behind `run.json`, checked when it is read."""

from __future__ import annotations

import dataclasses
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from perfkit.errors import ArchiveError
from perfkit.measuring.archive.format import FORMAT_VERSION, MEMBER_NAME

_SHA256 = re.compile(r"[0-9a-f]{64}")
_REMEDY = "restore the file from a copy or measure again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Everything about a run that is no table. Entries are plain JSON values."""

    id: str
    created: str  # ISO 8601 with its zone
    simulated: bool
    title: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)  # full and nested
    load: Mapping[str, Any] = field(default_factory=dict)
    varied: Mapping[str, Any] = field(default_factory=dict)  # dotted name -> value
    environment: Mapping[str, Any] = field(default_factory=dict)
    source: Mapping[str, Any] = field(default_factory=dict)  # git state of the code under test; empty without one
    certificate: Mapping[str, Any] | None = None  # the point as `scan --json` prints it; None until analysed
    rounds: Sequence[Mapping[str, Any]] = ()  # the load phases: index, started_ns, ended_ns
    gauges: Sequence[Mapping[str, Any]] = ()  # readings of the in-flight gauge
    counters: Sequence[Mapping[str, Any]] = ()  # the server's counters before and after each round
    generator_reports: Sequence[Mapping[str, Any]] = ()
    notes: Sequence[str] = ()  # gaps: which collector could not run, and why
    further: Mapping[str, Any] = field(default_factory=dict)  # entries of a newer writer, kept as they came


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFacts:
    """What a file of the run must look like."""

    sha256: str
    bytes: int


_TYPES: dict[str, tuple[type, ...]] = {
    "id": (str,),
    "created": (str,),
    "simulated": (bool,),
    "title": (str,),
    "settings": (dict,),
    "load": (dict,),
    "varied": (dict,),
    "environment": (dict,),
    "source": (dict,),
    "certificate": (dict, type(None)),
    "rounds": (list,),
    "gauges": (list,),
    "counters": (list,),
    "generator_reports": (list,),
    "notes": (list,),
}
_REQUIRED = ("id", "created", "simulated")
_JSON_NAMES = {str: "a text", bool: "true or false", dict: "an object", list: "a list", type(None): "null"}


def new_id(created: str) -> str:
    """A run's identifier: the moment it was created, to sort by, and four random digits."""
    moment = datetime.fromisoformat(created)
    return f"{moment:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def to_document(manifest: Manifest, files: Mapping[str, FileFacts]) -> dict[str, Any]:
    """The manifest and its files' facts as `run.json` holds them."""
    entries = {item.name: getattr(manifest, item.name) for item in dataclasses.fields(manifest)}
    further = entries.pop("further")
    hashes = {name: dataclasses.asdict(facts) for name, facts in sorted(files.items())}
    return {"schema": FORMAT_VERSION, "simulated": manifest.simulated, **further, **entries, "hashes": hashes}


def from_document(document: Mapping[str, Any], where: Path) -> Manifest:
    """The record in `run.json`; raises ArchiveError that names the entry and the file."""
    known = {name: document[name] for name in _TYPES if name in document}
    for name in _REQUIRED:
        if name not in known:
            raise ArchiveError(f"{where} lacks {name}; {_REMEDY}")
    for name, value in known.items():
        _check_type(name, value, where)
    check_created(known["created"], where)
    further = {name: value for name, value in document.items() if name not in {*_TYPES, "schema", "hashes"}}
    return Manifest(**known, further=further)


def files_of(document: Mapping[str, Any], where: Path) -> dict[str, FileFacts]:
    """The facts of every file of the run; raises ArchiveError for a name that leads elsewhere."""
    hashes = document.get("hashes")
    if not isinstance(hashes, dict):
        raise ArchiveError(f"{where}: hashes is {type(hashes).__name__}; an object is needed: {_REMEDY}")
    return {name: _facts_of(name, value, where) for name, value in hashes.items()}


def check_created(created: str, where: Path) -> None:
    """Raise ArchiveError unless a text is a moment."""
    try:
        datetime.fromisoformat(created)
    except ValueError:
        raise ArchiveError(f"{where}: created is {created!r}; a moment as in ISO 8601 is needed: {_REMEDY}") from None


def _check_type(name: str, value: Any, where: Path) -> None:
    if not isinstance(value, _TYPES[name]):
        allowed = " or ".join(_JSON_NAMES[kind] for kind in _TYPES[name])
        raise ArchiveError(f"{where}: {name} is {value!r:.80}; {allowed} is needed: {_REMEDY}")
    if isinstance(value, list):
        wanted = str if name == "notes" else dict
        for item in value:
            if not isinstance(item, wanted):
                raise ArchiveError(f"{where}: {name} holds {item!r:.80}; each must be {_JSON_NAMES[wanted]}: {_REMEDY}")


def _facts_of(name: str, value: Any, where: Path) -> FileFacts:
    if not MEMBER_NAME.fullmatch(name):
        raise ArchiveError(f"{where} names a file {name!r}, which no run has; do not trust this folder")
    sha256, size = (value.get("sha256"), value.get("bytes")) if isinstance(value, dict) else (None, None)
    is_hash = isinstance(sha256, str) and _SHA256.fullmatch(sha256)
    if not is_hash or not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise ArchiveError(f"{where}: hashes of {name} is {value!r:.80}; sha256 and bytes are needed: {_REMEDY}")
    return FileFacts(sha256=str(sha256), bytes=size)
