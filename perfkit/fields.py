"""How is a settings record declared, checked, addressed by a dotted name, and read from text?

A record is a frozen dataclass whose fields are made by `field`; a nested record is a field without
limits. All checks run once, when the record is built.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from perfkit.errors import ConfigError

Record = TypeVar("Record")


def field(
    default: Any,
    doc: str,
    *,
    live: bool = True,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] | None = None,
) -> Any:
    """A settings field: its default, one line of documentation, limits, and whether it changes live."""
    facts = {"default": default, "doc": doc, "live": live, "low": low, "high": high, "choices": choices}
    return dataclasses.field(default=default, metadata=facts)


def nested(record: type) -> Any:
    """A field that holds another settings record, at its defaults."""
    return dataclasses.field(default_factory=record)


class Checked:
    """Base of settings records: checks every field when built."""

    __slots__ = ()

    def __post_init__(self) -> None:
        hints = typing.get_type_hints(type(self))
        for item in dataclasses.fields(self):  # type: ignore[arg-type]
            if item.metadata:
                _check(item.name, getattr(self, item.name), hints[item.name], item.metadata)


def _check(name: str, value: Any, hint: Any, facts: Mapping[str, Any]) -> None:
    if value is None:
        if type(None) not in typing.get_args(hint):
            raise ConfigError(f"{name} has no value; it takes {describe(hint, facts)}")
        return
    wanted = _plain_type(hint)
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, wanted) or (wanted is not bool and isinstance(value, bool)):
        raise ConfigError(f"{name} is {value!r}; it takes {describe(hint, facts)}")
    choices, low, high = facts["choices"], facts["low"], facts["high"]
    if choices and value not in choices:
        raise ConfigError(f"{name} is {value!r}; it takes {describe(hint, facts)}")
    if (low is not None and not value >= low) or (high is not None and not value <= high):
        raise ConfigError(f"{name} is {value}; it takes {describe(hint, facts)}")


def _plain_type(hint: Any) -> Any:
    if isinstance(hint, types.UnionType):
        return next(part for part in typing.get_args(hint) if part is not type(None))
    return hint


def describe(hint: Any, facts: Mapping[str, Any]) -> str:
    """What a field takes, for people: `a whole number from 1 to 64`."""
    if facts["choices"]:
        return "one of " + ", ".join(facts["choices"])
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
    text = names.get(_plain_type(hint), str(hint))
    low, high = facts["low"], facts["high"]
    if low is not None and high is not None:
        text += f" from {_limit(low)} to {_limit(high)}"
    elif low is not None:
        text += f", {_limit(low)} or more"
    return text


def _limit(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:g}"


def leaves(record: type, prefix: str = "") -> Iterator[tuple[str, Any, Mapping[str, Any]]]:
    """Every plain field below a record type: dotted name, type, facts."""
    hints = typing.get_type_hints(record)
    for item in dataclasses.fields(record):
        name = f"{prefix}{item.name}"
        if item.metadata:
            yield name, hints[item.name], item.metadata
        else:
            yield from leaves(hints[item.name], f"{name}.")


def matches(name: str, record: type) -> list[str]:
    """The dotted names that a user's name may mean: the exact one, else every leaf that ends in it."""
    known = [dotted for dotted, _, _ in leaves(record)]
    if name in known:
        return [name]
    return [dotted for dotted in known if dotted.endswith(f".{name}")]


def parse(name: str, text: str, record: type) -> Any:
    """Read a field's value from text by the field's own type; raises ConfigError."""
    hint, facts = next((hint, facts) for dotted, hint, facts in leaves(record) if dotted == name)
    if text.lower() in ("none", "") and type(None) in typing.get_args(hint):
        return None
    wanted = _plain_type(hint)
    try:
        if wanted is bool:
            return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}[text.lower()]
        return wanted(text)
    except (ValueError, KeyError):
        raise ConfigError(f"{name} is {text!r}; it takes {describe(hint, facts)}") from None


def get(record: Any, name: str) -> Any:
    """The value at a dotted name."""
    for part in name.split("."):
        record = getattr(record, part)
    return record


def replace(record: Record, changes: Mapping[str, Any]) -> Record:
    """A new record with the values at some dotted names changed; checked as a whole."""
    hints = typing.get_type_hints(type(record))
    direct: dict[str, Any] = {}
    deeper: dict[str, dict[str, Any]] = {}
    for name, value in changes.items():
        head, _, rest = name.partition(".")
        if rest:
            deeper.setdefault(head, {})[rest] = value
        else:
            direct[head] = _from_file(value, hints.get(head))
    for head, below in deeper.items():
        direct[head] = replace(getattr(record, head), below)
    return dataclasses.replace(record, **direct)  # type: ignore[type-var]


def to_nested(record: Any) -> dict[str, Any]:
    """The record as nested plain dicts, every field included."""
    return dataclasses.asdict(record)


def from_nested(record: type[Record], values: Mapping[str, Any], prefix: str = "") -> Record:
    """Build a record from nested dicts; raises ConfigError that names an unknown or wrong entry."""
    known = {item.name: item for item in dataclasses.fields(record)}  # type: ignore[arg-type]
    hints = typing.get_type_hints(record)
    given: dict[str, Any] = {}
    for name, value in values.items():
        if name not in known:
            raise ConfigError(f"unknown setting {prefix}{name}; known here: {', '.join(sorted(known))}")
        if known[name].metadata:
            given[name] = _from_file(value, hints[name])
        elif isinstance(value, Mapping):
            given[name] = from_nested(hints[name], value, f"{prefix}{name}.")
        else:
            raise ConfigError(f"{prefix}{name} is {value!r}; it takes a table of settings")
    return record(**given)


def _from_file(value: Any, hint: Any) -> Any:
    """TOML has no word for absence: the text none stands for it where a field may be absent and is no text."""
    is_absent = value == "none" and type(None) in typing.get_args(hint) and _plain_type(hint) is not str
    return None if is_absent else value


def changes(before: Any, after: Any) -> dict[str, Any]:
    """The dotted names whose value differs, with the new value."""
    return {name: get(after, name) for name, _, _ in leaves(type(before)) if get(before, name) != get(after, name)}


def needs_restart(before: Any, after: Any) -> list[str]:
    """The changed dotted names that a running service cannot take up live."""
    facts_of = {name: facts for name, _, facts in leaves(type(before))}
    return [name for name in changes(before, after) if not facts_of[name]["live"]]


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested and dotted names both as dotted names: {"batch": {"max_size": 8}} -> {"batch.max_size": 8}."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat
