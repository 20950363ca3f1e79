"""Does a notebook show a comparison with its verdict, its figures, and nothing of the users' markup?"""

from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

from perfkit.measuring.analysis.compare.replicate import Replicate
from perfkit.measuring.analysis.compare.verdict import Rule, compare_replicates
from perfkit.measuring.comparing.comparison import Comparison
from perfkit.showing.notebook.comparison import shifts
from perfkit.showing.notebook.display import register


def runs(rate):
    return tuple(
        Replicate(
            run_id=f"run-{number}",
            created="2026-01-01T00:00:00+00:00",
            grade="sound",
            reasons=(),
            requests=100,
            values={"throughput_rps": rate, "p50_s": 0.01, "p95_s": 0.02, "p99_s": None},
            error_ratio=0.0,
            stolen_ratio=None,
            load_average=None,
        )
        for number in range(8)
    )


@pytest.fixture
def comparison():
    a, b = runs(100.0), runs(120.0)
    return Comparison(
        labels=("<i>old</i>", "new"),
        simulated=True,
        findings=compare_replicates(a, b, True, Rule()),
        rule=Rule(),
        runs_a=a,
        runs_b=b,
        notes=("a note",),
        folders=(Path("it"),),
    )


def test_a_comparison_is_a_table_and_plain_text_beside_it(comparison):
    shell = InteractiveShell()
    register(shell)
    bundle, _ = shell.display_formatter.format(comparison)
    assert bundle["text/plain"].startswith(
        "faster: new against <i>old</i> (simulated); throughput 100 req/s → 120 req/s"
    )
    page = bundle["text/html"]
    assert "<td>+20.0 %</td>" in page
    assert "&lt;i&gt;old&lt;/i&gt;" in page
    assert "<i>" not in page
    assert page.count("<tr>") == 5
    assert "a note" in page


def test_its_picture_is_a_chart(comparison):
    assert type(shifts(comparison)).__name__ == "Chart"
