"""`perfkit profile`: flame graphs of a service under load."""

from __future__ import annotations

import argparse
import dataclasses

from perfkit.showing.cli import options as flags


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of the command."""
    flags.add_model(parser)
    flags.add_load(parser)
    parser.add_argument(
        "--seconds", type=float, default=5.0, help="time per kind of samples: running, GIL holders, idle (default 5)"
    )
    flags.add_output(parser)


def run(options: argparse.Namespace) -> int:
    """Record, list the top frames, write a page with the flame graph."""
    from perfkit.measuring.analysis.flame import top_frames
    from perfkit.measuring.profile import profile
    from perfkit.measuring.service import launch
    from perfkit.showing.cli import console
    from perfkit.showing.cli.tables import frames_table
    from perfkit.showing.report.collect import report_of_run
    from perfkit.showing.report.page import write_report

    settings, load = flags.read_settings(options, flags.read_load(options))
    with launch(settings) as service:
        run_ = profile(service, load, options.seconds, options.out)
    page = run_.folder / "report.html"
    write_report(page, report_of_run(run_))
    recordings = run_.stacks()
    if options.json:
        tops = {stacks["mode"]: list(map(dataclasses.asdict, top_frames(stacks, 20))) for stacks in recordings}
        document = {"schema": 1, "simulated": settings.is_simulated, "folder": str(run_.folder), "top_frames": tops}
        console.print_json(document)
        return 0
    out = console.results()
    for stacks in recordings:
        out.print(frames_table(stacks, top_frames(stacks, 12)))
    out.print(f"flame graph: {page}")
    return 0
