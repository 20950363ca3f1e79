"""Does a table say everything that a point knows, escaped, in a page and as text?"""

import dataclasses
import re

from perfkit.showing.notebook.table import MOST_ROWS, Table, table_of, to_html, to_text
from perfkit.showing.report.badge import Badge, Line
from perfkit.showing.report.rows import COLUMNS, Figure, Row

LINE = Line(name="Little", status="pass", figures="residual 0.410 %", limit="2.00 %", costs="void", note="Little 1961")
BADGE = Badge(grade="sound", summary="1 pass", lines=(LINE,))


def row(**changes):
    """A row with a figure in every column."""
    figures = tuple(Figure(text=f"{name} 1", note="0 to 2") for name in COLUMNS)
    plain = {"label": "", "setting": "4", "requests": "7", "figures": figures, "grade": "sound"}
    return Row(**{**plain, "reasons": (), "errors": "", "badge": BADGE, **changes})


def test_a_scan_has_a_row_a_point_with_grade_and_reasons(scan):
    table = table_of(scan)
    assert [row.setting for row in table.rows] == ["1", "2"]
    assert [row.grade for row in table.rows] == [point["grade"] for point in scan.points]
    assert (table.caption, table.head) == ("perfkit scan: noop · closed loop, 4 users", "workers")
    assert table.notes[-1] == f"Archived in {scan.folder}"


def test_a_run_is_one_row_that_says_when_it_is_simulated(profiled_run):
    table = table_of(profiled_run)
    assert len(table.rows) == 1
    assert table.caption.endswith("· simulated")
    assert "planted: no collector ran" in table.notes


def test_html_holds_every_figure_with_its_interval_and_the_reason_of_the_grade():
    table = Table(
        caption="c", head="workers", rows=(row(grade="void", reasons=("late", "lost"), errors="503: 2"),), notes=("n",)
    )
    page = to_html(table)
    assert all(f"<td>{name} 1<small>0 to 2</small></td>" in page for name in COLUMNS)
    assert '<b class="grade void">void</b>' in page
    assert re.findall(r"<small>(late|lost|errors: 503: 2)</small>", page) == ["late", "lost", "errors: 503: 2"]


def test_the_certificate_is_a_badge_that_opens():
    page = to_html(Table(caption="c", head="workers", rows=(row(),), notes=()))
    assert '<details class="certificate"><summary>certificate: sound, 1 pass</summary>' in page
    assert '<td class="text"><span>pass</span></td><td class="text">residual 0.410 %</td>' in page


def test_markup_in_labels_reasons_and_notes_stays_text():
    hostile = "<img src=x onerror=alert(1)>"
    table = Table(
        caption=hostile,
        head=hostile,
        rows=(row(label=hostile, setting=hostile, reasons=(hostile,) * 2),),
        notes=(hostile,),
    )
    assert "<img" not in to_html(dataclasses.replace(table))


def test_text_is_aligned_and_ends_with_reasons_and_notes():
    table = Table(
        caption="c", head="workers", rows=(row(), row(setting="16", grade="short", reasons=("why",))), notes=("n",)
    )
    lines = to_text(table).splitlines()
    assert lines[0] == "c"
    assert {line.index("throughput") for line in lines[1:4]} == {len("workers") + 2}
    assert [line.split()[-1] for line in lines[1:4]] == ["grade", "sound", "short"]
    assert lines[4:] == ["16: why", "n"]


def test_a_long_scan_shows_sixty_rows_and_says_how_many_more_there_are(scan, monkeypatch):
    points = [{**scan.points[0], "varied": {"workers": count}} for count in range(1, 71)]
    monkeypatch.setattr(type(scan), "points", property(lambda self: points))
    table = table_of(scan)
    assert len(table.rows) == MOST_ROWS
    assert "10 more points are not shown; `points` holds them all." in table.notes
