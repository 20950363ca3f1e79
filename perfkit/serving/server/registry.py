"""Which class serves a model's name? Entry points of installed packages, or `module:Class`."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any

from perfkit.errors import ConfigError
from perfkit.serving.server.adapter import complete
from perfkit.serving.server.model import Model

GROUP = "perfkit.models"


def known_models() -> list[str]:
    """Names that installed packages offer."""
    return sorted({entry.name for entry in entry_points(group=GROUP)})


def create_model(name: str) -> Model:
    """A new model for `minilm`, `simulated:PRESET` or `module:Class`; raises ConfigError."""
    head, _, argument = name.partition(":")
    for entry in entry_points(group=GROUP):
        if entry.name == head:
            return complete(_build(name, entry.load(), argument))
    if not argument:
        raise ConfigError(f"unknown model {name!r}; known: {', '.join(known_models())}, simulated:PRESET, module:Class")
    return complete(_build(name, _import(name, head, argument), ""))


def _import(name: str, module: str, attribute: str) -> Any:
    try:
        return getattr(importlib.import_module(module), attribute)
    except ImportError as error:
        raise ConfigError(f"model {name!r}: cannot import {module}: {error}; give module:Class on the import path") from error
    except AttributeError:
        raise ConfigError(f"model {name!r}: module {module} has no {attribute}; give module:Class") from None


def _build(name: str, factory: Callable[..., Any], argument: str) -> Any:
    takes_argument = bool(inspect.signature(factory).parameters)
    if takes_argument != bool(argument):
        wanted = f"{name}:PRESET" if takes_argument else name.partition(":")[0]
        raise ConfigError(f"unknown model {name!r}; it is written {wanted}")
    return factory(argument) if argument else factory()
