"""What can be set, in which unit and range, and does it change live? The settings as TOML that explains itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from perfkit import fields
from perfkit.settings import ServerSettings, to_toml

_UNITS = {"_s": "seconds", "_bytes": "bytes", "_rps": "requests a second", "_ratio": "a share from 0 to 1"}
_SECTION = re.compile(r"\[(.+)\]")
_ENTRY = re.compile(r"(?:# )?(\w+)(?: = | is not set)")


def settings_page(settings: ServerSettings) -> str:
    """The TOML of the settings with one line of comment above each field; reads back as the same settings."""
    facts = {name: (hint, facts) for name, hint, facts in fields.leaves(ServerSettings)}
    return "\n".join(_lines(to_toml(settings).splitlines(), facts)) + "\n"


def _lines(plain: list[str], known: Mapping[str, tuple[Any, Mapping[str, Any]]]) -> Iterator[str]:
    prefix = ""
    for line in plain:
        if section := _SECTION.fullmatch(line):
            prefix = f"{section[1]}."
        entry = _ENTRY.match(line)
        if entry and prefix + entry[1] in known:
            yield f"# {_explanation(entry[1], *known[prefix + entry[1]])}"
        yield line


def _explanation(name: str, hint: Any, facts: Mapping[str, Any]) -> str:
    unit = next((text for ending, text in _UNITS.items() if name.endswith(ending)), "")
    allowed = fields.describe(hint, facts) + (f" ({unit})" if unit else "")
    change = "changes live" if facts["live"] else "needs a restart"
    return " · ".join([facts["doc"], allowed, f"default {_as_toml(facts['default'])}", change])


def _as_toml(value: Any) -> str:
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
