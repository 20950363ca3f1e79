"""Which preset describes this service on this machine, and does it predict what was not fitted?

A few cells of workers and batch size are measured on the real server, in interleaved rounds, and the numbers of a
preset are fitted to them. With a check, further cells are measured in the same rounds, so that a slow minute of the
machine meets both; the preset then says in virtual time what they should give. Only those count as predictions.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from perfkit import fields
from perfkit.errors import ConfigError, TargetFailed
from perfkit.explaining.twin.closed_loop import Cell, run_cell
from perfkit.explaining.twin.copies import CopyRates, measure_copies
from perfkit.explaining.twin.fit import Fit, fit
from perfkit.explaining.twin.observed import observe
from perfkit.measuring.archive.folder import contents_of
from perfkit.measuring.collectors.environment import fingerprint
from perfkit.measuring.experiment import run_data
from perfkit.measuring.load.loops import ClosedLoop
from perfkit.measuring.scanning.grid import Scan, ScanWatch, run_scan
from perfkit.measuring.scanning.host import Launched
from perfkit.measuring.scanning.plan import Point, ScanPlan
from perfkit.serving.devices.simulated.preset import (
    DeviceParts,
    HostPart,
    Preset,
    ServiceParts,
)
from perfkit.serving.server.defaults import open_device
from perfkit.settings.server import ServerSettings

USERS = 32
FITTED_SIZES = (1, 4, 16)
CHECKED_SIZES = (2, 8)
MOST_SPREAD_RATIO = 0.15  # of a cell's rounds, above which it is shown and not judged
GOAL_RATIO = 0.15  # median error of the judged cells
_REQUESTS = 4_000  # per predicted cell; enough for one in a hundred in throughput


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CellResult:
    """One measured cell beside what the preset says of it. `spread_ratio`: largest less smallest round, of the mean."""

    workers: int
    max_size: int
    is_fitted: bool
    measured_rps: float | None
    spread_ratio: float | None
    predicted_rps: float

    @property
    def error_ratio(self) -> float | None:
        """Predicted over measured, less 1; None where nothing was measured."""
        return self.predicted_rps / self.measured_rps - 1 if self.measured_rps else None

    @property
    def is_judged(self) -> bool:
        """Whether it counts: not fitted, measured, and steady from round to round."""
        if self.is_fitted or self.spread_ratio is None or self.measured_rps is None:
            return False
        return self.spread_ratio <= MOST_SPREAD_RATIO


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """A fitted preset, what it was fitted to, and its predictions."""

    model: str
    is_simulated: bool
    device: str
    preset: Preset
    fit: Fit
    copies: CopyRates | None
    cells: tuple[CellResult, ...]
    environment: Mapping[str, Any]
    created: str
    scan: Scan

    @property
    def judged(self) -> tuple[CellResult, ...]:
        """The cells that count as predictions."""
        return tuple(cell for cell in self.cells if cell.is_judged)

    @property
    def median_error_ratio(self) -> float | None:
        """Median size of the error over the judged cells; None without one."""
        errors = [abs(cell.error_ratio or 0.0) for cell in self.judged]
        return statistics.median(errors) if errors else None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What to calibrate, how long to measure each cell, and whether to measure cells for a check."""

    settings: ServerSettings
    seconds: float = 18.0
    rounds: int = 3
    checks: bool = False
    payloads: str | None = None

    def __post_init__(self) -> None:
        settings = self.settings
        if settings.topology == "carry":
            raise ConfigError("topology is carry, which knows no batches; calibrate with --set topology=staged")
        if settings.concurrency.model != "pool" or settings.replicas != 1:
            raise ConfigError(
                "a preset describes one pool of workers; calibrate with concurrency.model = pool and replicas = 1"
            )


def plan_cells(slots: int, checks: bool) -> dict[tuple[int, int], bool]:
    """The cells (workers, largest batch) and whether each is fitted to: one worker for the calls, and as many as
    compute side by side for contention. The check takes sizes in between, and twice as many workers."""
    cells = {(1, size): True for size in FITTED_SIZES}
    if slots > 1:
        cells |= {(slots, size): True for size in (FITTED_SIZES[0], FITTED_SIZES[-1])}
    if checks:
        more = 2 * slots
        cells |= {(workers, size): False for size in CHECKED_SIZES for workers in sorted({1, max(2, slots), more})}
        cells |= {(more, size): False for size in FITTED_SIZES}
    return cells


def calibrate(order: Order, folder: Path, watch: ScanWatch | None = None, resume: bool = False) -> Calibration:
    """Measure, fit, predict; the scan is archived in `folder`, where `resume` goes on with an unfinished one.

    Raises TargetFailed when too little was measured.
    """
    settings = order.settings
    environment = fingerprint()
    device = open_device(settings)
    slots = 1 if device.has_copies else max(1, environment["usable_cores"] // settings.intra_op_threads)
    try:
        copies = measure_copies(device) if device.has_copies else None
    finally:
        device.close()
    cells = plan_cells(slots, order.checks)
    with Launched() as host:
        scan = run_scan(scan_plan(order, list(cells)), host, folder, watch, resume)
    observed = []
    for index, ((workers, size), is_fitted) in enumerate(cells.items()):
        if is_fitted:
            observed.append(observe(run_data(contents_of(scan.stored.run(index))), workers, size))
    found = fit([one for one in observed if one is not None], slots)
    preset = build_preset(settings.model, device.name, found, slots, copies)
    return Calibration(
        model=settings.model,
        is_simulated=settings.is_simulated,
        device=device.name,
        preset=preset,
        fit=found,
        copies=copies,
        cells=tuple(_result(preset, scan.points[index], cell, cells[cell]) for index, cell in enumerate(cells)),
        environment=environment,
        created=scan.stored.header.created,
        scan=scan,
    )


def scan_plan(order: Order, cells: Sequence[tuple[int, int]]) -> ScanPlan:
    """The scan that measures these cells."""
    load = ClosedLoop(concurrency=USERS, payloads=order.payloads)
    points = tuple(
        Point(
            settings=fields.replace(order.settings, {"workers": workers, "batch.max_size": size}),
            load=load,
            varied={"workers": workers, "batch.max_size": size},
        )
        for workers, size in cells
    )
    return ScanPlan(points=points, seconds=order.seconds, rounds=order.rounds, seed=0)


def _result(preset: Preset, point: Mapping[str, Any], cell: tuple[int, int], is_fitted: bool) -> CellResult:
    workers, max_size = cell
    rates = [one["throughput_rps"] for one in point["rounds"] if one["requests"]]
    measured = point["throughput_rps"]["value"] if point["valid"] else None
    spread = (max(rates) - min(rates)) / (sum(rates) / len(rates)) if len(rates) > 1 else None
    run = run_cell(preset, Cell(users=USERS, workers=workers, max_size=max_size), _REQUESTS)
    return CellResult(
        workers=workers,
        max_size=max_size,
        is_fitted=is_fitted,
        measured_rps=measured,
        spread_ratio=spread,
        predicted_rps=run.throughput_rps,
    )


def build_preset(model: str, device: str, found: Fit, slots: int, copies: CopyRates | None) -> Preset:
    """The preset with the fitted numbers, for a device on which so many calls run side by side."""
    host = found.host
    rates: dict[str, Any] = {}
    if copies is not None:
        rates = dataclasses.asdict(copies) | {
            "input_bytes": round(found.h2d_s * copies.h2d_bytes_per_s),
            "output_bytes": round(found.d2h_s * copies.d2h_bytes_per_s),
        }
    if not (found.alpha_s.value or found.beta_s.value):
        raise TargetFailed("the model's calls take no time that can be measured; there is nothing to calibrate")
    return Preset(
        name=model,
        source=f"calibrated: {model} on the {device} device of one machine",
        service=ServiceParts(
            preprocess=HostPart(parallel_s=host.preprocess_parallel_s, serial_s=host.preprocess_serial_s),
            predict=HostPart(parallel_s=host.call_parallel_s, serial_s=host.call_serial_s),
            postprocess=HostPart(parallel_s=host.postprocess_parallel_s, serial_s=host.postprocess_serial_s),
            server=HostPart(parallel_s=host.pause_s, serial_s=host.server_serial_s),
        ),
        device=DeviceParts(
            alpha_s=found.alpha_s.value or 0.0,
            beta_s=found.beta_s.value or 0.0,
            compute_slots=slots,
            time_sharing=copies is None,
            sm_ratio=0.0 if copies is None else 1.0,
            corun_ratio=found.corun_ratio.value or 0.0,
            **rates,
        ),
        server_defaults={"topology": "staged", "workers": slots},
    )
