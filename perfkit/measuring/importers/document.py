"""Which figures does a whole JSON document hold, whatever stands where they should be?"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import orjson

from perfkit.errors import ConfigError
from perfkit.measuring.importers.source import Source

_MOST = 1e18  # nothing that is measured here is larger


def load(source: Source, what: str) -> Any:
    """The document; raises ConfigError with the position where it is cut or broken."""
    text = source.whole()
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        pass  # k6 and others write NaN, which only the standard library takes
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{source.path}: {what} that is cut or broken ({error}); write it again") from None


def load_object(source: Source, what: str) -> dict[str, Any]:
    """A document that must be an object."""
    found = load(source, what)
    if not isinstance(found, dict):
        raise ConfigError(f"{source.path}: {what} that is no JSON object but a {type(found).__name__}")
    return found


def part(document: object, name: str) -> dict[str, Any]:
    """An object inside; an empty one where there is none."""
    found = document.get(name) if isinstance(document, Mapping) else None
    return found if isinstance(found, dict) else {}


def items(document: object, name: str) -> list[Any]:
    """A list inside; an empty one where there is none."""
    found = document.get(name) if isinstance(document, Mapping) else None
    return found if isinstance(found, list) else []


def figure(document: object, name: str, divisor: float = 1.0) -> float | None:
    """A number inside, divided to the base unit; None where there is none."""
    found = document.get(name) if isinstance(document, Mapping) else None
    return as_figure(found, divisor)


def as_figure(value: object, divisor: float = 1.0) -> float | None:
    """A number that can be one: not true, not text, not infinite, not negative."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if not 0 <= value <= _MOST or not math.isfinite(value):
        return None
    return value / divisor if divisor != 1.0 else value


def count(document: object, name: str) -> int | None:
    """A whole number inside."""
    value = figure(document, name)
    return None if value is None else int(value)
