"""A notebook shows the findings of a device: a picture where there is one, and every line."""

from perfkit.measuring.gpucheck.child import Findings
from perfkit.showing.notebook.chart import Chart
from perfkit.showing.notebook.device_views import show_findings


def line(line_id, figures, status="pass"):
    """A line as `perfkit gpucheck --json` prints it."""
    return {"id": line_id, "name": "a <claim>", "status": status, "reason": "because", "figures": figures}


def test_the_picture_stands_over_the_lines():
    curve = {"0.3": {"normal_s": 0.002, "high_s": 0.001, "saving_ratio": 0.5}}
    lines = (line("9.sooner", {"worst_ratio": 0.5}, "fail"), line("9.saving", curve, "recorded"))
    chart, table = show_findings(Findings(device="simulated:h200", simulated=True, lines=lines)).children
    assert isinstance(chart, Chart)
    assert "(simulated)" in chart.figure
    assert "say nothing about a GPU" in table.value
    assert "a &lt;claim&gt;" in table.value
    assert table.value.count("font-weight: bold") == 1


def test_what_has_no_picture_is_a_table_alone():
    (table,) = show_findings(
        Findings(device="cuda", simulated=False, lines=(line("12.caught", {"counted": 1}),))
    ).children
    assert table.value.startswith("<div style='margin: 4px 0'>cuda</div>")
