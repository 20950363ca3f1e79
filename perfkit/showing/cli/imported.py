"""How is an imported file shown on the command line? Its facts, then its levels, profiles, series and metrics."""

from __future__ import annotations

from rich import box
from rich.table import Table
from rich.text import Text

from perfkit.measuring.importers.foreignrun import point_of
from perfkit.measuring.importers.imported import Imported
from perfkit.showing.cli import console
from perfkit.showing.report.badge import badge_of
from perfkit.showing.report.foreignrows import facts, tables
from perfkit.showing.report.rows import Figure, TextTable

_OR_MORE = " or more"


def print_imported(imported: Imported) -> None:
    """All of one file."""
    console.say(f"\n{imported.path}", style="bold")
    for fact in facts(imported):
        console.say(fact, style="dim")
    if point := point_of(imported):
        badge = badge_of(point)
        console.say(f"certificate: {badge.grade}, {badge.summary}; --report PAGE opens it", style="dim")
    out = console.results()
    for table in tables(imported):
        out.print()
        if table.title:
            out.print(Text(table.title, style="bold"))
        out.print(rich_table(table))


def rich_table(table: TextTable) -> Table:
    """As a terminal shows it."""
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False, caption=table.caption)
    shown.caption_justify = "left"
    for heading in table.headings:
        shown.add_column(Text(heading), justify="left" if heading in table.words else "right", overflow="fold")
    for row in table.rows:
        shown.add_row(*map(_cell, row))
    return shown


def _cell(figure: Figure) -> Text:
    """The figure, and below it its interval, as short as a column needs: `13.0–15.0`, `≥ 47.0 ms`."""
    note = figure.note.removeprefix("too few: ")
    if note.endswith(_OR_MORE):
        note = f"≥ {note.removesuffix(_OR_MORE)}"
    note = note.replace(" to ", "–").removesuffix(f" {figure.text.rpartition(' ')[2]}")
    return Text(figure.text).append(f"\n{note}" if note else "", style="dim")
