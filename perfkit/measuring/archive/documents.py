"""How does a JSON document, or any file that a stranger may have written, get safely off the disk?"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any

import orjson

from perfkit.errors import ArchiveError
from perfkit.measuring.archive.format import FORMAT_VERSION, READABLE_VERSIONS
from perfkit.units import format_bytes

MAX_DOCUMENT_BYTES = 256 << 20
MAX_MEMBER_BYTES = 8 << 30

# Numpy scalars come out of tables all the time, and a status may be a key. orjson writes NaN and the
# infinities as null, which is what an absent figure is.
_FORM = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
_OPTIONS = _FORM | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS


def encode(document: Mapping[str, Any], what: str) -> bytes:
    """The document as JSON; raises ArchiveError when a value has no JSON form."""
    try:
        return orjson.dumps(document, option=_OPTIONS)
    except TypeError as error:
        raise ArchiveError(f"{what} cannot be saved as JSON: {error}; use texts, numbers, lists and tables") from error


def decode(data: bytes, where: Path) -> dict[str, Any]:
    """The document in some bytes; raises ArchiveError that names the file."""
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise ArchiveError(f"{where} is not whole JSON ({error}); restore it from a copy or measure again") from error
    if not isinstance(document, dict):
        found = type(document).__name__
        raise ArchiveError(f"{where} holds a {found}; a JSON object is needed: restore it from a copy or measure again")
    return document


def read_document(where: Path) -> dict[str, Any]:
    """A versioned JSON document; raises ArchiveError for an unreadable file or an unknown version."""
    document = decode(read_bytes(where, MAX_DOCUMENT_BYTES), where)
    version = document.get("schema")
    if version not in READABLE_VERSIONS or isinstance(version, bool):
        known = ", ".join(map(str, READABLE_VERSIONS))
        remedy = "open it with the perfkit that wrote it, or a newer one"
        raise ArchiveError(
            f"{where} has schema {version!r}; this perfkit reads {known} and writes {FORMAT_VERSION}: {remedy}"
        )
    return document


def read_bytes(where: Path, limit_bytes: int) -> bytes:
    """A regular file's content; never follows a link, never blocks on a pipe. Raises ArchiveError."""
    with open_regular(where, limit_bytes) as file:
        return file.read()


@contextlib.contextmanager
def open_regular(where: Path, limit_bytes: int) -> Iterator[BufferedReader]:
    """A regular file, open for reading, once its size is known to be within the limit. Raises ArchiveError."""
    try:
        descriptor = os.open(where, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        # ELOOP is what O_NOFOLLOW answers for a link.
        reason = "it is a link" if where.is_symlink() else error.strerror
        raise ArchiveError(f"cannot read {where}: {reason}; restore the file itself or measure again") from error
    with open(descriptor, "rb") as file:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise ArchiveError(f"{where} is no regular file; restore it from a copy or measure again")
        if facts.st_size > limit_bytes:
            size, limit = format_bytes(facts.st_size), format_bytes(limit_bytes)
            raise ArchiveError(f"{where} has {size}, at most {limit} are read; it is no file that perfkit wrote")
        yield file
