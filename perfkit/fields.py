"""How is a settings record declared, checked, addressed by a dotted name, and read from text?

A record is a frozen dataclass whose fields are made by `field`; a nested record is a field without
limits, and a table of records under names of the user's own is a field made by `named`. All checks
run once, when the record is built.
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


def named(record: type) -> Any:
    """A field that holds settings records under names of the user's own, such as `[lanes.online]`; none at first."""
    # No part of the record's hash, which stays right without it: a table has none.
    return dataclasses.field(default_factory=dict, hash=False, metadata={"entries": record})


def is_leaf(item: dataclasses.Field[Any]) -> bool:
    """Whether a dataclass field holds a plain value."""
    return "doc" in item.metadata


def entries_of(item: dataclasses.Field[Any]) -> type | None:
    """The record type of a named table's entries; None for every other field."""
    return item.metadata.get("entries")


class Checked:
    """Base of settings records: checks every field when built."""

    __slots__ = ()

    def __post_init__(self) -> None:
        hints = typing.get_type_hints(type(self))
        for item in dataclasses.fields(self):  # type: ignore[arg-type]
            if is_leaf(item):
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
    """Every plain field below a record type: dotted name, type, facts. Entries of named tables are not among them."""
    hints = typing.get_type_hints(record)
    for item in dataclasses.fields(record):
        name = f"{prefix}{item.name}"
        if is_leaf(item):
            yield name, hints[item.name], item.metadata
        elif entries_of(item) is None:
            yield from leaves(hints[item.name], f"{name}.")


def values(record: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every plain value in a record: dotted name and value, entries of named tables included."""
    for item in dataclasses.fields(record):
        name, value = f"{prefix}{item.name}", getattr(record, item.name)
        if is_leaf(item):
            yield name, value
        elif entries_of(item) is None:
            yield from values(value, f"{name}.")
        else:
            for key, entry in value.items():
                yield from values(entry, f"{name}.{key}.")


def find(name: str, record: type) -> tuple[Any, Mapping[str, Any]] | None:
    """Type and facts of the plain field with this dotted name; None when there is none."""
    head, _, rest = name.partition(".")
    item = next((item for item in dataclasses.fields(record) if item.name == head), None)
    if item is None or is_leaf(item) == bool(rest):
        return None
    if is_leaf(item):
        return typing.get_type_hints(record)[head], item.metadata
    entries = entries_of(item)
    if entries is None:
        return find(rest, typing.get_type_hints(record)[head])
    return find(rest.partition(".")[2], entries)


def known_names(record: type) -> list[str]:
    """What may be set, for people: dotted names, with NAME where a user chooses one."""
    tables = [item for item in dataclasses.fields(record) if entries_of(item) is not None]
    found = [name for name, _, _ in leaves(record)]
    for item in tables:
        found += [f"{item.name}.NAME.{name}" for name, _, _ in leaves(item.metadata["entries"])]
    return found


def unknown(changes: Mapping[str, Any], record: type) -> list[str]:
    """The dotted names among the changes that nothing is known by, sorted."""
    return sorted(name for name, value in changes.items() if not _is_known(name, value, record))


def _is_known(name: str, value: Any, record: type) -> bool:
    """A plain field; an empty table; or an entry of a named table that goes (None)."""
    if find(name, record) is not None:
        return True
    item = next((item for item in dataclasses.fields(record) if item.name == name.partition(".")[0]), None)
    if item is None or is_leaf(item):
        return False
    depth = name.count(".")
    if entries_of(item) is not None and depth == 1:
        return value is None or value == {}
    return value == {} and (depth == 0 or any(known.startswith(f"{name}.") for known, _, _ in leaves(record)))


def matches(name: str, record: type) -> list[str]:
    """The dotted names that a user's name may mean: the exact one, else every leaf that ends in it."""
    if find(name, record) is not None:
        return [name]
    return [dotted for dotted, _, _ in leaves(record) if dotted.endswith(f".{name}")]


def parse(name: str, text: str, record: type) -> Any:
    """Read a field's value from text by the field's own type; raises ConfigError."""
    found = find(name, record)
    if found is None:
        raise ConfigError(f"unknown setting {name}; known: {', '.join(known_names(record))}")
    hint, facts = found
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
    """The value at a dotted name; None in an entry that a named table has not got."""
    for part in name.split("."):
        record = record.get(part) if isinstance(record, Mapping) else getattr(record, part, None)
    return record


def replace(record: Record, changes: Mapping[str, Any]) -> Record:
    """A new record with the values at some dotted names changed; checked as a whole.

    In a named table a change below a new name adds the entry, and None takes an entry away.
    """
    hints = typing.get_type_hints(type(record))
    items = dataclasses.fields(record)  # type: ignore[arg-type]
    tables = {item.name: entries_of(item) for item in items if not is_leaf(item)}
    direct: dict[str, Any] = {}
    for head, below in _by_head(changes).items():
        if head not in tables:
            direct[head] = _from_file(below, hints.get(head))
        elif tables[head] is None:
            direct[head] = replace(getattr(record, head), below)
        else:
            direct[head] = _replace_entries(getattr(record, head), below, tables[head])
    return dataclasses.replace(record, **direct)  # type: ignore[type-var]


def _by_head(changes: Mapping[str, Any]) -> dict[str, Any]:
    """{"a.b": 1, "a.c": 2, "d": 3} -> {"a": {"b": 1, "c": 2}, "d": 3}; an empty table is {}."""
    heads: dict[str, Any] = {}
    for name, value in changes.items():
        head, _, rest = name.partition(".")
        if not rest:
            heads[head] = heads.get(head, {}) if value == {} else value
        elif isinstance(heads.setdefault(head, {}), dict):
            heads[head][rest] = value
    return heads


def _replace_entries(before: Mapping[str, Any], changes: Any, entry: Any) -> dict[str, Any]:
    after = dict(before)
    for key, below in _by_head(changes).items():
        if below is None:
            after.pop(key, None)
        else:
            after[key] = replace(after.get(key) or entry(), below)
    return after


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
        if is_leaf(known[name]):
            given[name] = _from_file(value, hints[name])
        elif not isinstance(value, Mapping):
            raise ConfigError(f"{prefix}{name} is {value!r}; it takes a table of settings")
        elif (entry := entries_of(known[name])) is None:
            given[name] = from_nested(hints[name], value, f"{prefix}{name}.")
        else:
            given[name] = {key: from_nested(entry, below, f"{prefix}{name}.{key}.") for key, below in value.items()}
    return record(**given)


def _from_file(value: Any, hint: Any) -> Any:
    """TOML has no word for absence: the text none stands for it where a field may be absent and is no text."""
    is_absent = value == "none" and type(None) in typing.get_args(hint) and _plain_type(hint) is not str
    return None if is_absent else value


def changes(before: Any, after: Any) -> dict[str, Any]:
    """The dotted names whose value differs, with the new value: what `replace` needs to get from one to the other."""
    old, new = dict(values(before)), dict(values(after))
    found = {name: value for name, value in new.items() if name not in old or old[name] != value}
    for item in dataclasses.fields(before):
        if entries_of(item) is not None:
            gone = getattr(before, item.name).keys() - getattr(after, item.name).keys()
            found |= {f"{item.name}.{key}": None for key in sorted(gone)}
    return found


def needs_restart(before: Any, after: Any) -> list[str]:
    """The changed dotted names that a running service cannot take up live."""
    record = type(before)
    return [name for name in changes(before, after) if (found := find(name, record)) and not found[1]["live"]]


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested and dotted names both as dotted names: {"batch": {"max_size": 8}} -> {"batch.max_size": 8}.

    An empty table stays, for in a named table it is an entry at its defaults.
    """
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            flat |= flatten(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat
