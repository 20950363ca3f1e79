"""What does one side of a comparison mean? Changes on top of the common flags, or a file of settings."""

from __future__ import annotations

import argparse
import copy
from pathlib import Path

from perfkit.errors import ConfigError
from perfkit.measuring.comparing.plan import Side
from perfkit.measuring.scanning.plan import find_field
from perfkit.showing.cli import options as flags

DEFAULT = "default"
_MODEL = ("model", "server.model")


def read_side(text: str, options: argparse.Namespace) -> Side:
    """`workers=2,batch.max_size=8`, `default`, or a TOML file, on top of --model, --settings and --set.

    Raises ConfigError that says what a side may be.
    """
    own = copy.copy(options)
    if text.endswith(".toml"):
        if options.settings:
            raise ConfigError(f"{text} and --settings both name a file of settings; give one of them")
        own.settings = Path(text)
    elif text != DEFAULT:
        if "=" not in text:
            raise ConfigError(
                f"{text!r} is no side of a comparison; write NAME=VALUE[,NAME=VALUE…], {DEFAULT}, a file that ends "
                "in .toml, or a folder of runs that exists"
            )
        own.changes = _merged(options, text)
        own.model = _model_in(text) or options.model
    settings, load = flags.read_settings(own, flags.read_load(own))
    return Side(label=text, settings=settings, load=load)


def _merged(options: argparse.Namespace, text: str) -> list[str]:
    """The common --set texts, the side's own winning; its model is a flag of its own."""
    mine = flags.read_pairs(text.split(","), "a side")
    load = flags.read_load(options)
    own_names = {find_field(name, load) for name in mine if name not in _MODEL}
    common = flags.read_pairs(options.changes, "--set")
    kept = {name: value for name, value in common.items() if find_field(name, load) not in own_names}
    return [f"{name}={value}" for name, value in (kept | mine).items() if name not in _MODEL]


def _model_in(text: str) -> str | None:
    mine = flags.read_pairs(text.split(","), "a side")
    return next((mine[name] for name in _MODEL if name in mine), None)
