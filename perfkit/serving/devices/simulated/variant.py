"""How does a name ask for a preset at another pace, or with other parameters?

`NAME@0.1` takes a tenth of every time, `NAME+device.copies=pageable` changes a parameter; both may be given,
in this order, and several changes: `h200@0.5+device.copies=pageable+device.launches.chunks=1`.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from perfkit.errors import ConfigError

_NAME = re.compile(r"(?P<plain>.*?)(?:@(?P<ratio>[^@+/]*))?(?P<changes>(?:\+[^+=/]*=[^+]*)*)")
_LEAST, _MOST = 0.001, 1000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A preset's plain name, the ratio for its times, and changed parameters by dotted name, as texts."""

    plain: str
    ratio: float
    changes: Mapping[str, str]


def read_variant(name: str) -> Variant:
    """What a name asks for; raises ConfigError for a ratio that is none."""
    match = _NAME.fullmatch(name)
    assert match is not None  # the plain part takes anything
    changes = [change.partition("=") for change in match["changes"].split("+")[1:]]
    ratio = 1.0 if match["ratio"] is None else _ratio(match["ratio"])
    return Variant(plain=match["plain"], ratio=ratio, changes={key: text for key, _, text in changes})


def scaled(record: Any, ratio: float) -> Any:
    """A record with every time multiplied: fields in seconds by the ratio, those per second by its inverse."""
    named = {item.name: getattr(record, item.name) for item in dataclasses.fields(record)}
    return dataclasses.replace(record, **{name: scaled_value(name, value, ratio) for name, value in named.items()})


def scaled_value(name: str, value: Any, ratio: float) -> Any:
    """A time or a rate by the end of its name, or a record or table of such; anything else as it is."""
    if dataclasses.is_dataclass(value):
        return scaled(value, ratio)
    if isinstance(value, Mapping):
        return {key: scaled_value(key, below, ratio) for key, below in value.items()}
    if isinstance(value, str) or value is None or not name.endswith(("_s", "_rps")):
        return value
    return value / ratio if name.endswith(("_per_s", "_rps")) else value * ratio


def _ratio(text: str) -> float:
    try:
        ratio = float(text)
    except ValueError:
        ratio = 0.0
    if not _LEAST <= ratio <= _MOST:
        raise ConfigError(
            f"the times of a preset are to be multiplied by {text!r}; give a number from {_LEAST:g} to {_MOST:g}"
        )
    return ratio
