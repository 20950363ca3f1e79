"""`perfkit calibrate`: which preset describes a model on this machine, and does it predict other settings?"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfkit.errors import ConfigError
from perfkit.showing.cli import options as flags

if TYPE_CHECKING:
    from perfkit.explaining.twin.calibrate import Calibration

_LEAST_JUDGED = 6  # cells, for a verdict on the predictions
_DONE, _NO, _INCONCLUSIVE = 0, 1, 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of the command."""
    flags.add_model(parser)
    parser.add_argument(
        "--payloads", metavar="FILE", help="request bodies, one JSON document a line (default: the model's own)"
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="measure further cells in the same rounds and compare them with what the preset predicts",
    )
    flags.add_seconds(parser, 18.0, "measured time per cell, warm-up not counted")
    parser.add_argument(
        "--rounds", type=int, default=3, help="interleaved rounds that a cell is spread over (default 3)"
    )
    parser.add_argument("--resume", action="store_true", help="go on with the unfinished calibration in --out")
    flags.add_output(parser, "folder for the preset and its measurements (default: a new one in perfkit-runs)")


def run(options: argparse.Namespace) -> int:
    """Measure, fit, write the preset, compare; exit 0 done, 1 predictions off, 5 too few cells to say."""
    from perfkit.explaining.twin.calibrate import Order, calibrate
    from perfkit.explaining.twin.preset_file import preset_name, write_preset
    from perfkit.showing.cli import console

    order = Order(
        settings=flags.read_server_settings(options),
        seconds=options.seconds,
        rounds=options.rounds,
        checks=options.check,
        payloads=options.payloads,
    )
    if options.resume and options.out is None:
        raise ConfigError("--resume needs --out DIR, the folder of the calibration to go on with")
    folder = options.out or _new_folder()
    preset = folder / f"{preset_name(order.settings.model)}.toml"
    if preset.exists():
        raise ConfigError(f"{preset} exists already; name another folder with --out")
    with console.scan_progress(options.json) as watch:
        calibration = calibrate(order, folder / "scan", watch, options.resume)
    write_preset(calibration, preset)
    if options.json:
        console.print_json(_document(calibration, preset))
    else:
        _print(calibration, preset)
    return exit_code(calibration) if options.check else _DONE


def exit_code(calibration: Calibration) -> int:
    """0 when the median error of enough judged cells keeps the goal, 1 when not, 5 when too few could be judged."""
    from perfkit.explaining.twin.calibrate import GOAL_RATIO

    error = calibration.median_error_ratio
    if error is None or len(calibration.judged) < _LEAST_JUDGED:
        return _INCONCLUSIVE
    return _DONE if error <= GOAL_RATIO else _NO


def _new_folder() -> Path:
    from perfkit.clock import calendar_now
    from perfkit.measuring.archive.manifest import new_id
    from perfkit.measuring.experiment import RUNS_FOLDER

    return RUNS_FOLDER / f"calibration-{new_id(calendar_now())}"


def _document(calibration: Calibration, preset: Path) -> dict[str, Any]:
    fit = calibration.fit
    cells = [
        dataclasses.asdict(cell) | {"error_ratio": cell.error_ratio, "is_judged": cell.is_judged}
        for cell in calibration.cells
    ]
    return {
        "schema": 1,
        "simulated": calibration.is_simulated,
        "model": calibration.model,
        "device": calibration.device,
        "preset": str(preset),
        "fit": dataclasses.asdict(fit),
        "copies": None if calibration.copies is None else dataclasses.asdict(calibration.copies),
        "cells": cells,
        "judged": len(calibration.judged),
        "median_error_ratio": calibration.median_error_ratio,
        "environment": dict(calibration.environment),
    }


def _print(calibration: Calibration, preset: Path) -> None:
    from perfkit.explaining.twin.preset_file import is_busy
    from perfkit.showing.cli import console
    from perfkit.showing.cli.tables import calibration_table
    from perfkit.units import format_percent

    console.results().print(calibration_table(calibration))
    if is_busy(calibration):
        console.say("The machine was busy with other work when this began: repeat it when it is quiet.")
    error, judged = calibration.median_error_ratio, len(calibration.judged)
    if error is not None:
        few = "" if judged >= _LEAST_JUDGED else f"; a verdict takes {_LEAST_JUDGED}"
        console.say(f"median error of {judged} predicted cells: {format_percent(error)}{few}", style="bold")
    console.say(f"preset: {preset}\nserve it: perfkit serve --model simulated:{preset}")
