"""What does one generator process have to do? Everything it needs, in one file on its command line."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import orjson

from perfkit.errors import ConfigError
from perfkit.measuring.load.loops import Load, OpenLoop, load_from_nested, load_to_nested
from perfkit.measuring.load.shape import mean_level
from perfkit.measuring.load.share import Share

MOST_SCHEDULED = 50_000_000
"""An open loop's schedule is computed before the start and takes 8 bytes a request."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LoadSpec:
    """One phase of load by one process: to where, how, how long, and where the results go."""

    url: str
    load: Load
    seconds: float
    payloads: Path
    """One JSON document a line; each is the body of a POST."""
    samples: Path
    report: Path
    seed: int = 0
    first_request_id: int = 1
    cpus: tuple[int, ...] | None = None
    """Cores to run on; None leaves the choice to the system."""
    nice: int | None = None
    gate: Path | None = None
    """Named pipe from which the instant of the start is read (`gate.py`); None starts at once."""
    drain_s: float | None = None
    """How long after the last scheduled request replies are awaited; None = both time-outs together."""
    allow_remote: bool = False
    usable_cores: int | None = None
    """Cores that `cpu_ratio` is a share of; None = those this process may use before it is placed."""
    part: int = 0
    """Which of the load's `generators` processes this is, from 0."""

    def __post_init__(self) -> None:
        if not self.seconds > 0:
            raise ConfigError(f"seconds is {self.seconds}; it takes a number above 0")
        if self.first_request_id < 1:
            raise ConfigError(f"first_request_id is {self.first_request_id}; it takes 1 or more")
        if not 0 <= self.part < self.load.generators:
            raise ConfigError(f"part is {self.part}; it takes 0 to {self.load.generators - 1}, one for each generator")
        if isinstance(self.load, OpenLoop) and mean_level(self.load.steps) * self.seconds > MOST_SCHEDULED:
            raise ConfigError(
                f"{mean_level(self.load.steps):g} requests per second for {self.seconds:g} s are more than the "
                f"{MOST_SCHEDULED:,} that one schedule holds; lower the rate or the time"
            )

    @property
    def share(self) -> Share:
        """This process's part of the schedule."""
        return Share(seed=self.seed, index=self.part, count=self.load.generators)


def write_spec(spec: LoadSpec, path: Path) -> None:
    """Write a spec as JSON."""
    values = {item.name: getattr(spec, item.name) for item in dataclasses.fields(spec)}
    values["load"] = load_to_nested(spec.load)
    path.write_bytes(orjson.dumps(values, default=str, option=orjson.OPT_INDENT_2))


def read_spec(path: Path) -> LoadSpec:
    """Read a spec back; raises ConfigError when it is not one."""
    try:
        values = orjson.loads(path.read_bytes())
        return LoadSpec(**_typed(values))
    except OSError as error:
        raise ConfigError(f"cannot read load spec {path}: {error.strerror}; give the path of a spec file") from error
    except (ValueError, TypeError, KeyError) as error:
        raise ConfigError(f"{path} is not a load spec: {error}") from error


def _typed(values: dict[str, Any]) -> dict[str, Any]:
    paths: dict[str, Path | None] = {name: Path(values[name]) for name in ("payloads", "samples", "report")}
    cpus, gate = values.get("cpus"), values.get("gate")
    paths["gate"] = None if gate is None else Path(gate)
    return values | paths | {"load": load_from_nested(values["load"]), "cpus": None if cpus is None else tuple(cpus)}
