"""What does a simulated service consist of: which host work, which device work, how scattered?

A preset is a TOML file in `data/presets`, every number with its derivation beside it. Times are
means: per request in preprocess and postprocess, per call of the model in predict.
"""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from perfkit import fields
from perfkit.clock import NS_PER_S
from perfkit.errors import ConfigError
from perfkit.fields import Checked, field, nested
from perfkit.resources import data_path
from perfkit.serving.devices.simulated.engine import FIFO, POLICIES, EngineSpec
from perfkit.serving.devices.simulated.parts import BoardParts, LaunchParts, MemoryParts
from perfkit.serving.devices.simulated.variant import read_variant, scaled, scaled_value

COMPUTE = "compute"
H2D = "h2d"
D2H = "d2h"
HOST = "host"
DELAY = "delay"
DEVICE_ENGINES = (COMPUTE, H2D, D2H)
ROW_KINDS = ("fitted", "predicted")
PINNED = "pinned"
PAGEABLE = "pageable"
_FILE_SUFFIX = ".toml"


class Step(NamedTuple):
    """Work on one engine: its mean in nanoseconds, its coefficient of variation, its share of the engine."""

    engine: str
    mean_ns: float
    cv: float
    share: float = 0.0  # of the multiprocessors; 0 = it leaves them all to others


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPart(Checked):
    """Host work inside one stage: first the part that runs beside others, then the part behind the lock."""

    parallel_s: float = field(0.0, "mean wait that any number of threads share", low=0.0, high=60.0)
    serial_s: float = field(
        0.0, "mean work that one thread at a time can do (interpreter lock, global lock)", low=0.0, high=60.0
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceParts(Checked):
    """Where the host work lies, how it scatters, and who gets the lock next.

    `server` is what the server spends on a request around its stages (serial), and what passes between its reply and
    the client's next request (parallel). Only the virtual clock needs it: whoever serves a preset has a real server.
    """

    preprocess: HostPart = nested(HostPart)
    predict: HostPart = nested(HostPart)
    postprocess: HostPart = nested(HostPart)
    server: HostPart = nested(HostPart)
    parallel_cv: float = field(0.0, "coefficient of variation of the parallel waits", low=0.0, high=10.0)
    service_cv: float = field(0.0, "coefficient of variation of lock and device work", low=0.0, high=10.0)
    lock_policy: str = field(FIFO, "who gets the lock next", choices=POLICIES)
    contention_per_request_ratio: float = field(
        0.0, "growth of the lock work per request in flight beyond the limit", low=0.0, high=1.0
    )
    contention_free_requests: int = field(0, "requests in flight that cost nothing extra", low=0)

    def host_steps(self, part: HostPart, in_flight: int) -> list[Step]:
        """A stage's host work in order, with so many requests in flight."""
        serial_s = part.serial_s * self.inflation_ratio(in_flight)
        steps = [
            Step(DELAY, part.parallel_s * NS_PER_S, self.parallel_cv),
            Step(HOST, serial_s * NS_PER_S, self.service_cv),
        ]
        return [step for step in steps if step.mean_ns]

    def inflation_ratio(self, in_flight: int) -> float:
        """By how much the lock work is longer with this many requests in flight."""
        return 1.0 + self.contention_per_request_ratio * max(0, in_flight - self.contention_free_requests)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceParts(Checked):
    """The simulated accelerator: time of a batch, copies, memory."""

    alpha_s: float = field(0.0, "time of one call whatever its size", low=0.0, high=60.0)
    beta_s: float = field(0.0, "further time per request in the call", low=0.0, high=60.0)
    compute_slots: int = field(
        1, "kernels that run side by side at most, and only while their sm_ratio is 1 together", low=1, high=1024
    )
    sm_ratio: float = field(1.0, "share of the multiprocessors that one kernel keeps active", low=0.0, high=1.0)
    corun_ratio: float = field(
        0.0, "growth of a kernel's time for each other one that runs when it starts", low=0.0, high=100.0
    )
    time_sharing: bool = field(
        False, "calls beyond compute_slots share the processors' time, as on a CPU, instead of waiting"
    )
    copies: str = field(
        PINNED,
        "memory of the host that a worker copies through: pinned = beside everything else; pageable = its thread waits",
        choices=(PINNED, PAGEABLE),
    )
    h2d_bytes_per_s: float = field(24.8e9, "copy to the device from pinned memory", low=1.0)
    d2h_bytes_per_s: float = field(24.8e9, "copy from the device to pinned memory", low=1.0)
    pageable_bytes_per_s: float = field(10e9, "copy to or from pageable memory; it blocks the caller", low=1.0)
    copy_latency_s: float = field(10e-6, "fixed part of a copy", low=0.0, high=1.0)
    input_bytes: int = field(0, "input of one request; 0 = no copy", low=0)
    output_bytes: int = field(0, "output of one request; 0 = no copy", low=0)
    memory_bytes: int = field(24 << 30, "memory of the device", low=1)
    weights_bytes: int = field(0, "memory that the model itself takes", low=0)
    launches: LaunchParts = nested(LaunchParts)
    memory: MemoryParts = nested(MemoryParts)
    board: BoardParts = nested(BoardParts)

    def compute_s(self, size: int) -> float:
        """Mean time of one call with `size` requests: alpha + beta · size."""
        return self.alpha_s + self.beta_s * size

    def h2d_step(self, nbytes: int, is_pinned: bool = True) -> Step:
        """A copy to the device from pinned or from pageable memory."""
        bytes_per_s = self.h2d_bytes_per_s if is_pinned else self.pageable_bytes_per_s
        return Step(H2D, (self.copy_latency_s + nbytes / bytes_per_s) * NS_PER_S, 0.0)

    def d2h_step(self, nbytes: int, is_pinned: bool = True) -> Step:
        """A copy from the device to pinned or to pageable memory."""
        bytes_per_s = self.d2h_bytes_per_s if is_pinned else self.pageable_bytes_per_s
        return Step(D2H, (self.copy_latency_s + nbytes / bytes_per_s) * NS_PER_S, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow(Checked):
    """One row of a published table, and whether the preset was fitted to it or predicts it."""

    concurrency: int = field(1, "requests in flight", low=1)
    throughput_rps: float = field(1.0, "published throughput", low=0.0)
    kind: str = field("predicted", "was it used for the fit", choices=ROW_KINDS)
    p99_s: float | None = field(None, "published 99th percentile of the latency", low=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """One simulated service. `server_defaults` lie below the user's own settings."""

    name: str
    source: str
    service: ServiceParts
    device: DeviceParts
    table_rows: tuple[TableRow, ...] = ()
    server_defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def compute_step(self, size: int) -> Step:
        """The device's work for one call with `size` requests."""
        return Step(COMPUTE, self.device.compute_s(size) * NS_PER_S, self.service.service_cv, self.device.sm_ratio)

    def dispatch_steps(self, in_flight: int) -> list[Step]:
        """The host's work of one call of the model, its launches included."""
        service, launches = self.service, self.device.launches
        held = [] if launches.is_free else [Step(HOST, launches.dispatch_s * NS_PER_S, 0.0)]
        return [*service.host_steps(service.predict, in_flight), *held]

    def request_steps(self, in_flight: int) -> list[Step]:
        """All the work of one request in order, at batch size 1, with so many requests in flight.

        The launches come before the device's work, not beside it: an upper bound where they would overlap.
        """
        service, device = self.service, self.device
        is_pinned = device.copies == PINNED
        h2d = [device.h2d_step(device.input_bytes, is_pinned)] if device.input_bytes else []
        d2h = [device.d2h_step(device.output_bytes, is_pinned)] if device.output_bytes else []
        return [
            *service.host_steps(service.preprocess, in_flight),
            *self.dispatch_steps(in_flight),
            *h2d,
            self.compute_step(1),
            *d2h,
            *service.host_steps(service.postprocess, in_flight),
        ]

    @property
    def engines(self) -> dict[str, EngineSpec]:
        """The engines on which its work runs."""
        return {
            COMPUTE: EngineSpec(
                slots=self.device.compute_slots,
                corun_ratio=self.device.corun_ratio,
                time_sharing=self.device.time_sharing,
            ),
            H2D: EngineSpec(),
            D2H: EngineSpec(),
            HOST: EngineSpec(policy=self.service.lock_policy),
            DELAY: EngineSpec(slots=None),
        }


DEFAULT_PRESET = Preset(
    name="none",
    source="no preset: copies cost time, nothing else does",
    service=ServiceParts(),
    device=DeviceParts(),
)


def preset_names() -> list[str]:
    """The presets that come with perfkit, sorted."""
    return sorted(path.stem for path in data_path("presets").glob("*.toml"))


def load_preset(name: str) -> Preset:
    """A preset by name or by the path of a file, or a variant of it such as `h200@0.5+device.copies=pageable`.

    Raises ConfigError that lists what is known.
    """
    variant = read_variant(name)
    preset = _load_plain(variant.plain)
    if variant.ratio != 1.0:
        preset = _at_pace(preset, variant.ratio)
    if variant.changes:
        preset = _changed(preset, variant.changes)
    return preset if name == variant.plain else dataclasses.replace(preset, name=name)


def _load_plain(name: str) -> Preset:
    if name.endswith(_FILE_SUFFIX):
        return read_preset(Path(name))
    known = preset_names()
    if name not in known:
        raise ConfigError(f"unknown preset {name!r}; known: {', '.join(known)}, and any file whose name ends in .toml")
    return read_preset(data_path("presets", f"{name}{_FILE_SUFFIX}"))


def _at_pace(preset: Preset, ratio: float) -> Preset:
    return dataclasses.replace(
        preset,
        source=f"{preset.source}; every time multiplied by {ratio:g}",
        service=scaled(preset.service, ratio),
        device=scaled(preset.device, ratio),
        table_rows=tuple(scaled(row, ratio) for row in preset.table_rows),
        server_defaults=scaled_value("server", preset.server_defaults, ratio),
    )


def _changed(preset: Preset, changes: Mapping[str, str]) -> Preset:
    """The preset with some parameters read from text; it is no longer the one that fits its table."""
    parts = {"service": ServiceParts, "device": DeviceParts}
    values: dict[str, Any] = {}
    for name, text in changes.items():
        head, _, rest = name.partition(".")
        if head not in parts:
            raise ConfigError(f"unknown parameter {name!r} of a preset; its name starts with service. or device.")
        values[name] = fields.parse(rest, text, parts[head])
    told = ", ".join(f"{name} = {text}" for name, text in changes.items())
    source = f"{preset.source}; changed: {told}"
    return dataclasses.replace(fields.replace(preset, values), source=source, table_rows=())


def read_preset(path: Path) -> Preset:
    """A preset from a file; raises ConfigError with the file and the reason."""
    try:
        values = tomllib.loads(path.read_text("utf-8"))
        return _from_nested(path.stem, values)
    except OSError as error:
        raise ConfigError(f"cannot read preset {path}: {error.strerror}; give the path of a TOML file") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, ConfigError) as error:
        raise ConfigError(f"preset file {path.name}: {error}") from error


def _from_nested(name: str, values: dict[str, Any]) -> Preset:
    unknown = sorted(set(values) - {"source", "service", "device", "table_rows", "server"})
    if unknown:
        raise ConfigError(f"unknown entry {unknown[0]}; known: source, service, device, table_rows, server")
    return Preset(
        name=name,
        source=values.get("source", ""),
        service=fields.from_nested(ServiceParts, values.get("service", {}), "service."),
        device=fields.from_nested(DeviceParts, values.get("device", {}), "device."),
        table_rows=tuple(fields.from_nested(TableRow, row, "table_rows.") for row in values.get("table_rows", [])),
        server_defaults=values.get("server", {}),
    )
