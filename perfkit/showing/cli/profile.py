"""`perfkit profile`: what do the threads of a service do under load? Flame graphs, and the top frames in text."""

from __future__ import annotations

import argparse
import dataclasses

from perfkit.showing.cli import options as flags

_OVERHEAD_S = 1.0  # per kind of samples: py-spy starts, and writes what it saw
_FRAMES, _JSON_FRAMES = 12, 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of the command."""
    flags.add_model(parser)
    flags.add_load(parser)
    flags.add_seconds(parser, 5.0, "time per kind of samples: running threads, GIL holders, all threads")
    flags.add_parent(parser)


def run(options: argparse.Namespace) -> int:
    """Record, list the top frames, write a page with the flame graph."""
    from perfkit.measuring.analysis.flame import top_frames
    from perfkit.measuring.collectors.pyspy import MODES
    from perfkit.measuring.profile import profile
    from perfkit.measuring.service import launch
    from perfkit.showing.cli import console
    from perfkit.showing.cli.tables import frames_table
    from perfkit.showing.report.collect import report_of_run
    from perfkit.showing.report.page import write_report

    settings, load = flags.read_settings(options, flags.read_load(options))
    total_s = len(MODES) * (options.seconds + _OVERHEAD_S)
    bar = console.round_progress(f"profile of {settings.model}", total_s, options.json)
    with bar as watch, launch(settings) as service:
        run_ = profile(service, load, options.seconds, options.out, watch)
    page = run_.folder / "report.html"
    write_report(page, report_of_run(run_))
    recordings = run_.stacks()
    if options.json:
        tops = {
            stacks["mode"]: list(map(dataclasses.asdict, top_frames(stacks, _JSON_FRAMES))) for stacks in recordings
        }
        document = {"schema": 1, "simulated": settings.is_simulated, "folder": str(run_.folder), "top_frames": tops}
        console.print_json(document)
        return 0
    out = console.results()
    for stacks in recordings:
        out.print(frames_table(stacks, top_frames(stacks, _FRAMES)))
        out.print()
    for note in run_.stored.manifest.notes:
        console.say(note, style="dim")
    console.say(f"flame graph: {page}")
    return 0
