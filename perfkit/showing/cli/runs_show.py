"""`perfkit runs show`: what is one run, scan or comparison of the archive?"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from perfkit.showing.cli import runs
from perfkit.showing.cli.runs_list import entry_document

if TYPE_CHECKING:
    from perfkit.measuring.archive.entries import RunEntry
    from perfkit.measuring.archive.folder import StoredRun
    from perfkit.measuring.recount import Recount


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of the action."""
    runs.add_wanted(parser)
    parser.add_argument(
        "--recount", action="store_true", help="read rate and quantiles anew from the raw requests, whatever the grade"
    )
    runs.add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Figures, settings, environment, code and files; every byte is checked. Exit 3 when one is not as saved."""
    from perfkit.errors import ArchiveError
    from perfkit.measuring.archive.folder import verify_run
    from perfkit.measuring.archive.runs import find_run
    from perfkit.showing.cli import console

    entry = find_run(options.folder, options.wanted)
    if entry.state == "broken":
        raise ArchiveError(f"{entry.path} is broken: {entry.reason}")
    stored, points = _held(entry)
    problems = [problem for one in stored for problem in verify_run(one.path)]
    counts = _recounts(stored) if options.recount and not problems else []
    if options.json:
        recounted = {"recounts": [one.to_json() for one in counts]} if options.recount else {}
        console.print_json(_document(entry, stored, points) | recounted | {"problems": problems})
    else:
        _tell(entry, stored, points)
        for one in counts:
            console.say(_recount_text(one))
        console.say("every byte is as saved" if not problems else "\n".join(problems))
    return ArchiveError.exit_code if problems else 0


def _held(entry: RunEntry) -> tuple[list[StoredRun], Sequence[Mapping[str, Any]]]:
    """The run folders of a result, and the points that they come to so far."""
    from perfkit.measuring.archive.folder import load_run
    from perfkit.measuring.archive.storedcomparison import load_comparison
    from perfkit.measuring.archive.storedscan import load_scan

    if entry.kind == "run":
        run = load_run(entry.path)
        return [run], [run.manifest.certificate] if run.manifest.certificate else []
    if entry.kind == "comparison":
        comparison = load_comparison(entry.path)
        return comparison.runs(), comparison.points()
    scan = load_scan(entry.path)
    if scan.is_finished:
        return [scan.run(index) for index in range(entry.points)], scan.header.points
    return [scan.part(part) for part in scan.done_parts()], []


def _recounts(stored: Sequence[StoredRun]) -> list[Recount]:
    from perfkit.measuring.recount import recount

    return [recount(one) for one in stored if one.manifest.rounds]  # an imported file has none


def _recount_text(one: Recount) -> str:
    from perfkit.units import format_duration, format_rate

    found = ", ".join(
        f"{name.upper()} {format_duration(q.value)} ({format_duration(q.low)} to {format_duration(q.high)})"
        for name, q in one.latency.items()
    )
    return f"recounted from {one.requests:,} raw requests: {format_rate(one.throughput.value)}, {found}"


def _document(entry: RunEntry, stored: Sequence[StoredRun], points: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    first = stored[0].manifest if stored else None
    return {
        "schema": 1,
        "simulated": entry.simulated,
        "run": entry_document(entry),
        "points": list(points),
        "settings": dict(first.settings) if first else {},
        "load": dict(first.load) if first else {},
        "environment": dict(first.environment) if first else {},
        "source": dict(first.source) if first else {},
        "notes": list(dict.fromkeys(note for one in stored for note in one.manifest.notes)),
        "files_bytes": {
            str((one.path / name).relative_to(entry.path)): facts.bytes
            for one in stored
            for name, facts in one.files.items()
        },
    }


def _tell(entry: RunEntry, stored: Sequence[StoredRun], points: Sequence[Mapping[str, Any]]) -> None:
    from perfkit.showing.cli import console
    from perfkit.showing.cli.tables import points_table, remarks

    for line in _facts(entry, stored):
        console.say(line)
    full = [{"varied": {}, **point} for point in points if "throughput_rps" in point]
    if full:
        console.results().print(points_table(full, entry.title or entry.model or entry.id))
        for line in remarks(full):
            console.say(line)
    if entry.kind == "comparison":
        from perfkit.measuring.comparing.interleaving import open_comparison

        console.say(open_comparison(entry.path).claim)


def _facts(entry: RunEntry, stored: Sequence[StoredRun]) -> Iterator[str]:
    """One line for each thing that a person asks of an old run."""
    from perfkit.showing.report.rows import facts
    from perfkit.units import format_bytes

    label = " · simulated" if entry.simulated else ""
    size = format_bytes(entry.bytes)
    yield f"{entry.kind} {entry.id} · {entry.state}{label} · {entry.created} · {size} · {entry.path}"
    yield from filter(None, (entry.reason, f"pinned: {entry.pinned}" if entry.pinned else ""))
    if not stored:
        return
    manifest = stored[0].manifest
    for name in ("settings", "load", "source", "environment"):
        known = getattr(manifest, name)
        yield f"{name}: " + (", ".join(f"{key} {text}" for key, text in facts(known)) if known else "not recorded")
    count = sum(len(run.files) for run in stored)
    yield f"files: {count} in {len(stored)} run folder{'s' if len(stored) > 1 else ''}; in the first: " + ", ".join(
        f"{name} {format_bytes(one.bytes)}" for name, one in stored[0].files.items()
    )
    yield from (f"note: {note}" for note in dict.fromkeys(note for run in stored for note in run.manifest.notes))
