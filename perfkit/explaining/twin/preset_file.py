"""How is a calibration written down as a preset that can be served, every number with where it comes from?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from perfkit.errors import ConfigError
from perfkit.measuring.analysis.blocks import Interval
from perfkit.units import format_duration, format_number, format_percent, format_rate

if TYPE_CHECKING:
    from perfkit.explaining.twin.calibrate import Calibration, CellResult

_BUSY_RATIO = 0.5  # of the cores: above this something else ran beside the measurement


def preset_name(model: str) -> str:
    """A model's name as a file's: letters, digits and dashes."""
    return re.sub(r"[^A-Za-z0-9]+", "-", model).strip("-").lower()


def write_preset(calibration: Calibration, path: Path) -> None:
    """Write the preset; raises ConfigError when there is a file already or the folder cannot be written."""
    try:
        with path.open("x", encoding="utf-8") as stream:
            stream.write(preset_text(calibration))
    except FileExistsError:
        raise ConfigError(f"{path} exists already; name another folder with --out") from None
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}; name another folder with --out") from error


def is_busy(calibration: Calibration) -> bool:
    """Whether other work filled more than half of the cores when the calibration began."""
    load, cores = calibration.environment["load_average"], calibration.environment["usable_cores"]
    return load is not None and load > _BUSY_RATIO * cores


def preset_text(calibration: Calibration) -> str:
    """The whole file as TOML; it reads back as the calibration's preset."""
    return "\n".join([*_head(calibration), *_service(calibration), *_device(calibration), *_server(calibration), ""])


def _head(calibration: Calibration) -> Iterator[str]:
    machine = calibration.environment
    label = "a simulated" if calibration.is_simulated else "the"
    yield f"# Calibrated: {calibration.model} on {label} {calibration.device} device. Written by perfkit calibrate."
    yield f"# Taken {calibration.created} on machine {machine['machine']}: {machine['cpu_model']},"
    load = format_number(machine["load_average"])
    yield f"# {machine['usable_cores']} usable cores, load average {load} at its start."
    if is_busy(calibration):
        yield "# The machine was busy with other work: take these numbers again when it is quiet."
    packages = ", ".join(
        f"{name} {machine['packages'][name]}" for name in ("perfkit", "torch") if name in machine["packages"]
    )
    yield f"# Python {machine['python']}, {packages}."
    yield from map(_cell_line, calibration.cells)
    yield f'source = "{calibration.preset.source.replace(chr(34), "")}"'


def _cell_line(cell: CellResult) -> str:
    role = "fitted" if cell.is_fitted else "predicted" if cell.is_judged else "predicted, not judged"
    error = "" if cell.error_ratio is None else f" ({cell.error_ratio:+.1%})"
    return (
        f"# workers {cell.workers}, batch {cell.max_size}: measured {format_rate(cell.measured_rps)}, "
        f"preset {format_rate(cell.predicted_rps)}{error}, {role}; rounds apart by {format_percent(cell.spread_ratio)}"
    )


def _service(calibration: Calibration) -> Iterator[str]:
    service = calibration.preset.service
    yield "\n# Host work is CPU time of the cells with one worker, split by the batch's size into a part for each call"
    yield "# and a part for each request (least squares). Waits are medians of the cell with the smallest batches."
    yield "[service]"
    yield "parallel_cv = 0.0  # means only: the scatter of single calls was not fitted"
    yield "service_cv = 0.0"
    parts = (
        ("preprocess", service.preprocess, "a request's work there, and in collating", "its wait there"),
        ("predict", service.predict, "a call's work beside computing: collating, launches, server", "its waits"),
        ("postprocess", service.postprocess, "a request's work there", "its wait there"),
    )
    for stage, part, work, wait in parts:
        yield f"\n[service.{stage}]"
        yield f"serial_s = {part.serial_s:.9f}  # {work}"
        yield f"parallel_s = {part.parallel_s:.9f}  # {wait}"
    yield "\n[service.server]  # for the virtual clock; who serves this preset has a real server around it"
    yield f"serial_s = {service.server.serial_s:.9f}  # a request's part of the process's CPU time beside the stages"
    yield f"parallel_s = {service.server.parallel_s:.9f}  # from a reply to the same user's next request"


def _device(calibration: Calibration) -> Iterator[str]:
    device, fit = calibration.preset.device, calibration.fit
    yield "\n[device]"
    for size in fit.sizes:
        off = size.mean_s / size.fitted_s - 1
        mean = format_duration(size.mean_s)
        yield f"# call with {size.size}: mean {mean} of {size.calls}, off the line by {off:+.1%}"
    yield f"# fit by least relative squares; root mean square of the residuals {format_percent(fit.residual_ratio)}"
    yield f"alpha_s = {device.alpha_s:.9f}  # {_within(fit.alpha_s)}"
    yield f"beta_s = {device.beta_s:.9f}  # {_within(fit.beta_s)}"
    yield f"compute_slots = {device.compute_slots}  # usable cores over intra_op_threads; 1 behind copies"
    yield f"time_sharing = {str(device.time_sharing).lower()}  # whether calls beyond these share their time or wait"
    yield f"sm_ratio = {device.sm_ratio!r}"
    yield f"corun_ratio = {device.corun_ratio:.6f}  # growth of a call beside another; {_within(fit.corun_ratio, 1.0)}"
    if calibration.copies is None:
        yield "# copies: none, the model computes where its inputs lie"
        return
    yield f"input_bytes = {device.input_bytes}  # a request's share of the copies, times the bandwidth"
    yield f"output_bytes = {device.output_bytes}"
    for name in ("h2d_bytes_per_s", "d2h_bytes_per_s", "pageable_bytes_per_s", "copy_latency_s"):
        yield f"{name} = {getattr(calibration.copies, name)!r}  # medians of 5 copies of 4 KiB and of 16 MiB, by events"


def _server(calibration: Calibration) -> Iterator[str]:
    yield "\n[server]"
    for name, value in calibration.preset.server_defaults.items():
        yield f"{name} = {value}" if isinstance(value, int) else f'{name} = "{value}"'


def _within(interval: Interval, scale: float = 1e3) -> str:
    """The interval in milliseconds, or as plain numbers."""
    if interval.low is None or interval.high is None:
        return "no interval: it takes two rounds"
    unit = " ms" if scale != 1.0 else ""
    return f"95 % interval over the rounds {interval.low * scale:.4g} to {interval.high * scale:.4g}{unit}"
