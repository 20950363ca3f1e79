"""Does the report open from disk as it would on anybody's machine: drawn, alone, legible, usable?"""

import json
from pathlib import Path

import pytest

from perfkit.showing.report import ReportData, write_report

pytestmark = pytest.mark.browser

SHOWING = Path(__file__).parents[1] / "showing"
READY = (
    "[...document.querySelectorAll('[data-figure]')].every((place) => place.dataset.draws)"
    " && document.querySelector('[data-flame]').dataset.drawMs"
)


@pytest.fixture
def report_page(tmp_path):
    """A report on disk with a scan, a flame graph and a hostile title."""
    points = json.loads((SHOWING / "plots" / "points.json").read_text("utf-8"))
    report = ReportData(
        title="</script><img src=//example.invalid/x.png onerror=alert(1)>",
        simulated=False,
        created="2026-11-30",
        recommendation="Use two workers.",
        scans=[
            {
                "title": "Worker threads",
                "varied": "workers",
                "series": {"": points["workers"]},
                "knee": points["knee_workers"],
                "best": points["best"],
            }
        ],
        flame=json.loads((SHOWING / "web" / "flame.json").read_text("utf-8")),
    )
    path = tmp_path / "report.html"
    write_report(path, report)
    return path


@pytest.mark.parametrize("dark", [False, True])
def test_it_opens_from_disk_draws_everything_and_asks_nobody(visit, report_page, dark):
    visited = visit(report_page, dark=dark)
    visited.wait(READY)
    charts = visited.page.locator("[data-figure]")
    assert charts.count() == 3
    assert all(charts.nth(at).locator(".main-svg").count() > 0 for at in range(3))
    assert visited.page.evaluate("getComputedStyle(document.querySelector('.gtitle')).fill") == (
        "rgb(255, 255, 255)" if dark else "rgb(0, 0, 0)"
    )
    assert visited.page.locator("img").count() == 0
    assert (visited.outside, visited.errors) == ([], [])


@pytest.mark.parametrize("dark", [False, True])
def test_a_certificate_opens_and_is_legible_on_light_pages_and_dark_ones(visit, report_page, dark):
    page = visit(report_page, dark=dark).page
    badge, entry = page.locator("details.certificate").first, page.locator("details.certificate tbody td").first
    assert not entry.is_visible()
    badge.locator("summary").click()
    assert entry.is_visible()
    assert badge.bounding_box()["width"] > 600
    colour = page.evaluate("getComputedStyle(document.querySelector('details.certificate tbody td')).color")
    assert colour == ("rgb(255, 255, 255)" if dark else "rgb(0, 0, 0)")


def test_the_drawn_curve_is_the_points(visit, report_page):
    visited = visit(report_page)
    visited.wait(READY)
    drawn = visited.page.evaluate(
        """() => document.querySelector("#scan-0").previousElementSibling.querySelector(".js-plotly-plot")._fullData
          .filter((trace) => trace.name === "throughput" && trace.mode === "markers")[0].y"""
    )
    assert list(drawn) == [92.1, 151.6, 153.2, 139.9]


def test_the_flame_graph_zooms_and_escape_resets_it(visit, report_page):
    visited = visit(report_page)
    visited.wait(READY)
    visited.page.locator("canvas").click(position={"x": 100, "y": 5 * 19 + 9})
    root = "document.querySelector('[data-flame]').dataset.root"
    assert visited.page.evaluate(root) == "compute (sample_models/minilm.py:84)"
    visited.page.keyboard.press("Escape")
    assert visited.page.evaluate(root) == "all threads"


def test_the_policy_stops_a_script_and_a_request_that_are_not_the_pages_own(visit, report_page):
    visited = visit(report_page)
    visited.wait(READY)
    visited.page.evaluate(
        """() => {
          const script = Object.assign(document.createElement("script"), { textContent: "globalThis.ran = true" });
          document.body.append(script);
          return fetch("https://example.invalid/x").catch(() => 0);
        }"""
    )
    assert visited.page.evaluate("globalThis.ran") is None
    assert visited.outside == []
    assert sum("Content Security Policy" in line for line in visited.errors) >= 2


def test_it_prints_with_light_charts_on_every_page(visit, report_page):
    visited = visit(report_page, dark=True)
    visited.wait(READY)
    document = visited.page.pdf(format="A4")
    assert document.startswith(b"%PDF")
    visited.wait("getComputedStyle(document.querySelector('.gtitle')).fill === 'rgb(255, 255, 255)'")
