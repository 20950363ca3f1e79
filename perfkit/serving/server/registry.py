"""Which class serves a model's name? Entry points of installed packages, or `module:Class`."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any

from perfkit.errors import ConfigError, PerfkitError, TargetFailed
from perfkit.serving.server.adapter import complete
from perfkit.serving.server.model import Model
from perfkit.serving.server.stages import describe

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
    if not all(part.isidentifier() for part in module.split(".")):
        raise ConfigError(f"unknown model {name!r}; give module:Class, with the module's dotted name")
    try:
        found = importlib.import_module(module)
    except ImportError as error:
        hint = "give module:Class on the import path"
        raise ConfigError(f"model {name!r}: cannot import {module}: {describe(error)}; {hint}") from error
    except Exception as error:
        raise TargetFailed(f"model {name!r}: {module} raised {type(error).__name__}: {describe(error)}") from error
    if not callable(getattr(found, attribute, None)):
        raise ConfigError(f"model {name!r}: module {module} has no class {attribute}; give module:Class")
    return getattr(found, attribute)


def _build(name: str, factory: Callable[..., Any], argument: str) -> Any:
    given = (argument,) if argument else ()
    try:
        inspect.signature(factory).bind(*given)
    except TypeError as error:
        wanted = name.partition(":")[0] if given else f"{name}:PRESET, or is a class that needs no arguments"
        raise ConfigError(f"model {name!r} cannot be made ({error}); it is written {wanted}") from None
    try:
        return factory(*given)
    except PerfkitError:
        raise
    except Exception as error:
        raise TargetFailed(f"model {name!r} cannot be made: {type(error).__name__}: {describe(error)}") from error
