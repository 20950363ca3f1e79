"""What text does a result file hold, however it was packed and encoded, without holding it all in memory?"""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from perfkit.errors import ConfigError
from perfkit.units import format_bytes

HEAD_BYTES = 1 << 16
LINE_LIMIT = 1 << 20  # characters: a longer line comes in pieces, so that memory stays bounded
CHUNK = 1 << 20
WHOLE_LIMIT_BYTES = 64 << 20  # of text; as objects it takes some ten times that
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_REPLACED = "\ufffd"
_CUT_END = "the file does not end with a line end: its last line may be cut"


class Source:
    """One file as text. What went wrong on the way is kept in `notes`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notes: list[str] = []
        try:
            with path.open("rb") as file:
                self._is_gzip = file.read(2) == b"\x1f\x8b"
            raw = self._first_bytes()
        except (IsADirectoryError, FileNotFoundError, PermissionError) as error:
            raise ConfigError(
                f"{path}: {(error.strerror or 'cannot be opened').lower()}; give a readable file"
            ) from None
        if not raw:
            raise ConfigError(f"{path}: the file is empty; expected the output of a load generator or profiler")
        self._encoding = _encoding_of(raw, path)
        if self._encoding not in ("utf-8", "utf-8-sig", "utf-16"):
            self.notes.append(f"the text is not UTF-8; it was read as {self._encoding}")
        self.head = self._decoder().decode(raw).removeprefix("\ufeff")

    @property
    def is_plain_utf8(self) -> bool:
        """Whether the bytes on the disk are the text: no packing, no mark, and a first line that is not blank."""
        return not self._is_gzip and self._encoding == "utf-8" and bool(self.head.partition("\n")[0].strip())

    def note_cut_end(self) -> None:
        """For a reader that takes the bytes itself: the note that `lines` leaves."""
        with self.path.open("rb") as file:
            file.seek(-1, io.SEEK_END)
            if file.read(1) != b"\n":
                self.notes.append(_CUT_END)

    def lines(self, keep_ends: bool = False) -> Iterator[str]:
        """Lines, without their ends unless asked for. Of a damaged file those before the damage, and a note on it."""
        replaced, last = 0, ""
        with self._text() as stream:
            while line := self._next(stream, LINE_LIMIT):
                if _REPLACED in line:
                    replaced += 1
                last = line
                yield line if keep_ends else line.rstrip("\r\n")
        if replaced:
            self.notes.append(
                f"{replaced} lines hold bytes that are not {self._encoding}; those are shown as {_REPLACED}"
            )
        if last and not last.endswith("\n"):
            self.notes.append(_CUT_END)

    def chunks(self) -> Iterator[str]:
        """The text in pieces of about a million characters."""
        with self._text() as stream:
            while piece := self._next(stream, CHUNK, whole_lines=False):
                yield piece

    def whole(self) -> str:
        """All of the text; a file too large for that is refused."""
        pieces, size = [], 0
        for piece in self.chunks():
            size += len(piece)
            if size > WHOLE_LIMIT_BYTES:
                limit = format_bytes(WHOLE_LIMIT_BYTES)
                raise ConfigError(
                    f"{self.path}: more than {limit} in one document of this format; record a shorter run"
                )
            pieces.append(piece)
        return "".join(pieces)

    def _first_bytes(self) -> bytes:
        with self._binary() as stream:
            try:
                return stream.read(HEAD_BYTES)
            except (EOFError, zlib.error, gzip.BadGzipFile):
                return self._gzip_rest()

    def _gzip_rest(self) -> bytes:
        """What a short, damaged gzip file holds before the damage."""
        with self.path.open("rb") as file:
            try:
                return zlib.decompressobj(wbits=31).decompress(file.read(HEAD_BYTES), HEAD_BYTES)
            except zlib.error:
                return b""

    def _binary(self) -> IO[bytes]:
        return gzip.open(self.path, "rb") if self._is_gzip else self.path.open("rb")  # type: ignore[return-value]

    @contextmanager
    def _text(self) -> Iterator[io.TextIOWrapper]:
        with self._binary() as binary, io.TextIOWrapper(binary, self._encoding, errors="replace") as stream:
            yield stream

    def _next(self, stream: io.TextIOWrapper, size: int, whole_lines: bool = True) -> str:
        try:
            return stream.readline(size) if whole_lines else stream.read(size)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            self.notes.append(f"the gzip stream is damaged ({error}): what came before is kept")
            return ""

    def _decoder(self) -> codecs.IncrementalDecoder:
        return codecs.getincrementaldecoder(self._encoding)(errors="replace")


def _encoding_of(raw: bytes, path: Path) -> str:
    for mark, name in _BOMS:
        if raw.startswith(mark):
            return name
    if raw.count(0) > len(raw) // 4:
        return "utf-16-le" if raw[1::2].count(0) > raw[0::2].count(0) else "utf-16-be"
    if 0 in raw:
        raise ConfigError(f"{path}: a binary file; expected text such as CSV, JSON or a tool's report")
    for name in ("utf-8", "gb18030"):
        try:
            codecs.getincrementaldecoder(name)().decode(raw)
            return name
        except UnicodeDecodeError:
            continue
    return "latin-1"
