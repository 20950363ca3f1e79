"""How do settings come from a TOML file, and how are they written as one?"""

from __future__ import annotations

import dataclasses
import json
import tomllib
from pathlib import Path
from typing import Any

from perfkit import fields
from perfkit.errors import ConfigError
from perfkit.settings.server import ServerSettings


def read_toml(path: Path) -> dict[str, Any]:
    """Nested values of a settings file; raises ConfigError with the file and the reason."""
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(
            f"cannot read settings file {path}: {error.strerror}; give the path of a TOML file"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"settings file {path} is not TOML: {error}") from error


def to_toml(settings: ServerSettings) -> str:
    """The settings as TOML text that `read_toml` and `from_nested` bring back.

    A value that is absent by default becomes a comment; one that was taken away is written "none".
    """
    return "\n".join(_toml_lines(settings, "")) + "\n"


def _toml_lines(record: Any, prefix: str) -> list[str]:
    items = dataclasses.fields(record)
    lines = [_toml_entry(item, getattr(record, item.name)) for item in items if fields.is_leaf(item)]
    for item in items:
        name, value = f"{prefix}{item.name}", getattr(record, item.name)
        if fields.entries_of(item) is not None:
            for key, entry in value.items():
                lines += ["", f"[{name}.{key}]", *_toml_lines(entry, f"{name}.{key}.")]
        elif not fields.is_leaf(item):
            lines += ["", f"[{name}]", *_toml_lines(value, f"{name}.")]
    return lines


def _toml_entry(item: dataclasses.Field[Any], value: Any) -> str:
    if value is None and item.default is None:
        return f"# {item.name} is not set"
    return f"{item.name} = {_toml_value(value)}"


def _toml_value(value: Any) -> str:
    if value is None:
        return '"none"'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # TOML's escapes are JSON's and DEL
    return repr(value)
