"""What can be set, in which unit and range, and does it change live? The settings as TOML that explains itself."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Any

from perfkit import fields
from perfkit.settings.file import to_toml
from perfkit.settings.server import ServerSettings

_UNITS = {"_s": "seconds", "_bytes": "bytes", "_rps": "requests a second", "_ratio": "a share from 0 to 1"}
_SECTION = re.compile(r"\[(.+)\]")
_ENTRY = re.compile(r"(?:# )?(\w+)(?: = | is not set)")


def settings_page(settings: ServerSettings) -> str:
    """The TOML of the settings with one line of comment above each field; reads back as the same settings."""
    return "\n".join([*_lines(to_toml(settings).splitlines()), *_empty_tables(settings)]) + "\n"


def _lines(plain: list[str]) -> Iterator[str]:
    prefix = ""
    for line in plain:
        if section := _SECTION.fullmatch(line):
            prefix = f"{section[1]}."
        entry = _ENTRY.match(line)
        if entry and (found := fields.find(prefix + entry[1], ServerSettings)):
            yield f"# {_explanation(entry[1], *found)}"
        yield line


def _empty_tables(settings: ServerSettings) -> Iterator[str]:
    """What an entry of a named table would hold, as comments, where there is none yet."""
    for item in dataclasses.fields(settings):
        entries = fields.entries_of(item)
        if entries is None or getattr(settings, item.name):
            continue
        yield from ("", f"# [{item.name}.NAME] for each NAME that you choose:")
        for name, hint, facts in fields.leaves(entries):
            yield f"# {name}: {_explanation(name, hint, facts)}"


def _explanation(name: str, hint: Any, facts: Mapping[str, Any]) -> str:
    unit = next((text for ending, text in _UNITS.items() if name.endswith(ending)), "")
    allowed = fields.describe(hint, facts) + (f" ({unit})" if unit else "")
    change = "changes live" if facts["live"] else "needs a restart"
    return " · ".join([facts["doc"], allowed, f"default {_as_toml(facts['default'])}", change])


def _as_toml(value: Any) -> str:
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
