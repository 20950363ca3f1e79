"""Which values stand in a JSON document that is too long, cut, or not quite JSON?

Reads on in pieces and decodes value by value. What profilers write wrong in the wild is mended where
it is beyond doubt: raw control characters, bare inf and nan, unescaped quotes in a name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from perfkit.measuring.importers.source import Source

_DECODER = json.JSONDecoder(strict=False)  # raw control characters are taken as they are
_BETWEEN = re.compile(r"[\s,]*")
_NEXT = re.compile(r"\}\s*,\s*\{\s*\"(?:ph|name|cat|args|pid|tid|ts|timestamp)\"")
_NAME = re.compile(r'("(?:name|labels)":\s*")(.*?)("\s*(?:,\s*"|\n?\s*\}))', re.DOTALL)
_BARE = re.compile(r"(?<=[:\[,\s])(-?)(inf|nan)(?:inity)?(?=[\s,\]}])", re.IGNORECASE)
_TAIL = 64  # characters: an error this near to the end of what was read may be a value cut by it
_VALUE_LIMIT = 8 << 20  # characters of one value; a longer one is no event
_KEEP = 1 << 16  # what stays in the buffer while searching


class JsonStream:
    """A position in a long document."""

    def __init__(self, source: Source) -> None:
        self._pieces = source.chunks()
        self._text, self._at, self._before = "", 0, 0
        self._ended = False
        self.is_cut = False
        self.mended = 0
        self.broken: list[int] = []  # where values stood that could not be mended

    def seek(self, pattern: re.Pattern[str]) -> bool:
        """Moves behind the next match; False when there is none."""
        while True:
            match = pattern.search(self._text, self._at)
            if match:
                self._at = match.end()
                return True
            self._at = max(self._at, len(self._text) - _KEEP)
            if not self._read_on():
                return False

    def value(self) -> Any:
        """The value here; raises ValueError when it is cut or no JSON."""
        while True:
            self._skip()
            try:
                value, self._at = _DECODER.raw_decode(self._text, self._at)
                return value
            except (json.JSONDecodeError, RecursionError):
                if len(self._text) - self._at > _VALUE_LIMIT or not self._read_on():
                    raise ValueError("cut or not JSON") from None

    def objects(self) -> Iterator[dict[str, Any]]:
        """The objects of the array whose bracket was just passed; broken ones are noted and skipped."""
        while True:
            self._skip()
            if self._at >= len(self._text):
                if not self._read_on():
                    self.is_cut = True
                    return
                continue
            if self._text[self._at] == "]":
                self._at += 1
                return
            found = self._object()
            if found is None:
                return
            yield from found

    def _object(self) -> list[dict[str, Any]] | None:
        """The next object, none where it is broken; None at the end of what there is."""
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except RecursionError:
                return self._skip_broken()
            except json.JSONDecodeError as error:
                is_short = error.pos >= len(self._text) - _TAIL or "Unterminated" in error.msg
                if is_short and len(self._text) - self._at < _VALUE_LIMIT and self._read_on():
                    continue
                return self._mended()
            self._at = end
            return [value] if isinstance(value, dict) else []

    def _mended(self) -> list[dict[str, Any]] | None:
        while not (following := _NEXT.search(self._text, self._at)):
            if len(self._text) - self._at > _VALUE_LIMIT or not self._read_on():
                break
        end = following.start() + 1 if following else len(self._text)
        try:
            value, used = _DECODER.raw_decode(_mend(self._text[self._at : end]))
        except (json.JSONDecodeError, RecursionError):
            return self._skip_broken()
        self.mended += 1
        self._at = end if following else self._at + used
        return [value] if isinstance(value, dict) else []

    def _skip_broken(self) -> list[dict[str, Any]] | None:
        following = _NEXT.search(self._text, self._at)
        if following is None and self._ended:
            self.is_cut = True
            return None
        self.broken.append(self._before + self._at)
        self._at = following.start() + 1 if following else len(self._text)
        return []

    def _skip(self) -> None:
        match = _BETWEEN.match(self._text, self._at)
        self._at = match.end() if match else self._at

    def _read_on(self) -> bool:
        piece = next(self._pieces, "")
        if not piece:
            self._ended = True
            return False
        self._before += self._at
        self._text, self._at = self._text[self._at :] + piece, 0
        return True


def _mend(text: str) -> str:
    named = _NAME.sub(lambda match: match[1] + _escaped(match[2]) + match[3], text)
    return _BARE.sub(lambda match: match[1] + ("Infinity" if match[2].lower() == "inf" else "NaN"), named)


def _escaped(name: str) -> str:
    """Quotes and backslashes that were written raw."""
    return re.sub(r'\\(?!["\\/bfnrtu])', r"\\\\", re.sub(r'(?<!\\)"', r"\"", name))
