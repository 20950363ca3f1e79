"""Which flags do several commands share, and what do they turn into?"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from perfkit import fields
from perfkit.errors import ConfigError
from perfkit.measuring.load.loops import ClosedLoop, Load, OpenLoop
from perfkit.measuring.load.profiles import (
    PROFILES_BY_NAME,
    USUAL_SECONDS,
    USUAL_USERS,
    Level,
    profile_load,
    usual_seconds,
)
from perfkit.measuring.phase import check_seconds
from perfkit.measuring.scanning.plan import LOAD, SERVER, Axis, find_field, parse_value
from perfkit.serving.server.defaults import settings_for
from perfkit.settings.file import read_toml
from perfkit.settings.server import ServerSettings


def add_model(parser: argparse.ArgumentParser) -> None:
    """Which model, and settings of the server and the load."""
    parser.add_argument("--model", help="minilm, resnet, mlp, noop, simulated:PRESET or module:Class (default minilm)")
    parser.add_argument("--settings", type=Path, metavar="FILE", help="TOML file of server settings")
    add_set(parser)


def add_set(parser: argparse.ArgumentParser) -> None:
    """Repeatable --set NAME=VALUE."""
    parser.add_argument(
        "--set",
        dest="changes",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="change a setting, e.g. batch.max_size=8; server. or load. before an ambiguous name (repeatable)",
    )


def add_load(parser: argparse.ArgumentParser) -> None:
    """Closed or open loop, and what is sent."""
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--concurrency", type=int, metavar="N", help="closed loop: N users (default 8)")
    kind.add_argument("--rate", type=float, metavar="RPS", help="open loop: Poisson arrivals at this mean rate")
    parser.add_argument("--profile", choices=tuple(PROFILES_BY_NAME), help=_profile_help())
    parser.add_argument(
        "--stable",
        metavar="LOAD",
        help="for --profile soak: the load that was stable before, as users (20), a rate (400rps), or the folder of "
        "a scan or staircase",
    )
    parser.add_argument("--generators", type=int, metavar="N", help="processes that share the load exactly (default 1)")
    parser.add_argument(
        "--payloads", metavar="FILE", help="request bodies, one JSON document a line (default: the model's own)"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of order, arrivals and payload choice (default 0)")


def _profile_help() -> str:
    """Names with what they are for; their parameters are settings of the load."""
    told = "; ".join(f"{one.name}: {one.text}" for one in PROFILES_BY_NAME.values())
    return (
        f"load profile. {told}. --concurrency or --rate gives its level; --set shape.levels=1/2/4/8, "
        "shape.start_level, shape.rise_ratio, shape.spike_factor, shape.spike_ratio, bursts.burst_s, bursts.quiet_s, "
        "bursts.quiet_ratio, replay.file, replay.unit, replay.origin, replay.speed change it"
    )


def add_output(parser: argparse.ArgumentParser, where: str) -> None:
    """Where results go, and in which form; `where` says what becomes of the folder."""
    parser.add_argument("--out", type=Path, metavar="DIR", help=where)
    parser.add_argument("--json", action="store_true", help="print one JSON document on stdout and nothing else")


def add_parent(parser: argparse.ArgumentParser) -> None:
    """Where a run gets a folder of its own, and in which form it is told."""
    add_output(parser, "folder in which the run gets a folder of its own (default perfkit-runs)")


def add_seconds(parser: argparse.ArgumentParser, default: float, what: str) -> None:
    """How long to measure."""
    parser.add_argument("--seconds", type=read_seconds, default=default, help=f"{what} (default {default:g})")


def add_profile_seconds(parser: argparse.ArgumentParser, what: str) -> None:
    """How long to measure, where the load may be a named profile with a usual time of its own."""
    told = ", ".join(f"{one.name} {one.seconds:g}" for one in PROFILES_BY_NAME.values() if one.seconds != USUAL_SECONDS)
    usual = f"default {USUAL_SECONDS:g}; {told}; a replay as long as its file"
    parser.add_argument("--seconds", type=read_seconds, help=f"{what} ({usual})")


def seconds_of(options: argparse.Namespace, load: Load) -> float:
    """The time asked for, else the usual one of the load's profile; raises ConfigError for a bad schedule file."""
    if options.seconds is not None:
        return float(options.seconds)
    return usual_seconds(options.profile, load)


def add_p99(parser: argparse.ArgumentParser) -> None:
    """The latency budget."""
    what = "latency budget: what the best point's P99 must keep, and one estimator of the knee asks about"
    parser.add_argument("--p99", type=_budget, metavar="S", help=what)


def _budget(text: str) -> float:
    try:
        return read_seconds(text)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(f"{text!r} is no latency; it takes seconds above 0") from None


def read_seconds(text: str) -> float:
    """A time to measure for, as argparse takes it."""
    try:
        seconds = float(text)
        check_seconds(seconds)
    except (ValueError, ConfigError):
        raise argparse.ArgumentTypeError(f"{text!r} is no time to measure for; it takes a number above 0") from None
    return seconds


def read_pairs(texts: Sequence[str], flag: str) -> dict[str, str]:
    """NAME=VALUE texts as a dict; raises ConfigError."""
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise ConfigError(f"{flag} {text!r} is not NAME=VALUE; write for example {flag} workers=4")
        if name.strip() in pairs:
            raise ConfigError(f"{flag} names {name.strip()} twice; give it once")
        pairs[name.strip()] = value.strip()
    return pairs


def read_load(options: argparse.Namespace) -> Load:
    """The load that the flags describe, before --set; raises ConfigError."""
    further = {"payloads": options.payloads, "seed": options.seed}
    if options.generators is not None:
        further["generators"] = options.generators
    level = Level(users=options.concurrency, rate_rps=options.rate)
    if options.stable is not None and options.profile != "soak":
        raise ConfigError("--stable is for --profile soak; leave it out")
    if options.profile is not None:
        return fields.replace(profile_load(options.profile, level, _stable(options.stable)), further)
    if options.rate is not None:
        return OpenLoop(rate_rps=options.rate, **further)
    return ClosedLoop(concurrency=USUAL_USERS if options.concurrency is None else options.concurrency, **further)


def _stable(text: str | None) -> Level | None:
    from perfkit.measuring.scanning.stable import find_stable

    return None if text is None else find_stable(text)


def read_beside(texts: Sequence[str], first: Load) -> dict[str, Load]:
    """--beside texts as further loads, by their texts; they share the first one's payloads unless they name others."""
    loads: dict[str, Load] = {}
    for text in texts:
        pairs = read_pairs(text.split(","), "--beside")
        kind = OpenLoop if "rate_rps" in pairs else ClosedLoop
        load = kind(payloads=first.payloads, seed=first.seed, allow_remote=first.allow_remote)
        names = {name: find_field(LOAD + name.removeprefix(LOAD), load) for name in pairs}
        changes = {full.removeprefix(LOAD): parse_value(full, pairs[name], load) for name, full in names.items()}
        if text in loads:
            raise ConfigError(f"--beside {text} is given twice; let the second differ, in its seed for example")
        loads[text] = fields.replace(load, changes)
    return loads


def read_settings(options: argparse.Namespace, load: Load) -> tuple[ServerSettings, Load]:
    """Server settings and load after --model, --settings and --set; raises ConfigError."""
    server, client = split_changes(options.changes, load)
    return _settings(options, server), fields.replace(load, client)


def read_server_settings(options: argparse.Namespace) -> ServerSettings:
    """Server settings where there is no load; raises ConfigError."""
    return _settings(options, split_changes(options.changes, None)[0])


def _settings(options: argparse.Namespace, server: dict[str, Any]) -> ServerSettings:
    from_file = fields.flatten(read_toml(options.settings)) if options.settings else {}
    changes = from_file | ({"model": options.model} if options.model else {}) | server
    model = changes.pop("model", "minilm")
    return settings_for(model, changes)


def split_changes(texts: Sequence[str], load: Load | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """--set texts as changes of the server's settings and of the load."""
    server: dict[str, Any] = {}
    client: dict[str, Any] = {}
    for name, text in read_pairs(texts, "--set").items():
        full = find_field(name, load)
        target, prefix = (server, SERVER) if full.startswith(SERVER) else (client, LOAD)
        target[full.removeprefix(prefix)] = parse_value(full, text, load)
    return server, client


def read_axes(texts: Sequence[str], load: Load) -> dict[str, Axis]:
    """--vary texts as axes, keyed by the names as written; raises ConfigError."""
    axes: dict[str, Axis] = {}
    for name, text in read_pairs(texts, "--vary").items():
        full = find_field(name, load)
        if full in (axis.name for axis in axes.values()):
            raise ConfigError(f"--vary names {full} twice; give it once, with all its values")
        axes[name] = Axis(name=full, values=tuple(parse_value(full, part.strip(), load) for part in text.split(",")))
    return axes
