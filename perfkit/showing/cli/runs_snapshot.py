"""`perfkit runs snapshot`: how do model versions, settings and machines stand side by side?"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfkit.showing.cli import runs

if TYPE_CHECKING:
    import pandas

_TEXTS = ("model", "version", "settings", "load", "hardware", "grades")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of the action."""
    runs.add_archive(parser)
    parser.add_argument("--html", type=Path, metavar="FILE", help="write the table as an HTML page too")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table as Markdown too")
    runs.add_json(parser)


def run(options: argparse.Namespace) -> int:
    """One row for each model, version, setting, load and machine in the archive."""
    from perfkit.measuring.comparing.history import read_archive
    from perfkit.measuring.comparing.snapshot import snapshot_table
    from perfkit.showing.cli import console
    from perfkit.showing.report.snapshots import shown, to_html, to_markdown

    archive = read_archive(options.folder)
    table = snapshot_table(archive.manifests)
    texts = shown(table)
    for path, write in ((options.html, to_html), (options.markdown, to_markdown)):
        if path is not None:
            path.write_text(write(texts), "utf-8")
    if options.json:
        rows: list[dict[str, Any]] = json.loads(table.to_json(orient="records"))
        document = {"schema": 1, "simulated": bool(table["simulated"].any()), "rows": rows}
        console.print_json(document | {"unreadable": list(archive.unreadable)})
    else:
        _print(texts)
        for line in archive.unreadable:
            console.remark(f"left out: {line}")
    return 0


def _print(texts: pandas.DataFrame) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from perfkit.showing.cli import console

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for heading in texts.columns:
        is_text = heading in _TEXTS
        table.add_column(heading, justify="left" if is_text else "right", no_wrap=not is_text, overflow="fold")
    for row in texts.itertuples(index=False):
        table.add_row(*map(Text, row))
    console.results().print(table)
