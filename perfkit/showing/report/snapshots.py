"""How does a snapshot of an archive read: as texts with units, as an HTML page, as Markdown?"""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import TYPE_CHECKING

from perfkit.units import ABSENT, format_duration, format_percent, format_rate

if TYPE_CHECKING:
    import pandas

_FORMATS: dict[str, tuple[str, Callable[[float | None], str]]] = {
    "throughput_rps": ("throughput", format_rate),
    "spread_ratio": ("spread", format_percent),
    "p50_s": ("P50", format_duration),
    "p95_s": ("P95", format_duration),
    "p99_s": ("P99", format_duration),
    "gpu_util_ratio": ("GPU", format_percent),
    "error_ratio": ("errors", format_percent),
}
_DAY = len("2026-01-31")


def shown(table: pandas.DataFrame) -> pandas.DataFrame:
    """The same rows as texts with units, absent figures as a dash; a simulated model says so.

    Users stand in the load's text already; CPU cores are left to the table.
    """
    texts = table.astype(object).where(table.notna(), None)
    for column, (_, write) in _FORMATS.items():
        texts[column] = [write(None if value is None else float(value)) for value in texts[column]]
    labels = (" (simulated)" if simulated else "" for simulated in table["simulated"])
    texts["model"] = [f"{model}{label}" for model, label in zip(texts["model"], labels, strict=True)]
    texts["latest"] = [str(moment)[:_DAY] for moment in texts["latest"]]
    voids = zip(texts["runs"], texts["void"], strict=True)
    texts["runs"] = [f"{runs} ({void} void)" if void else str(runs) for runs, void in voids]
    names = {column: name for column, (name, _) in _FORMATS.items()}
    return (
        texts.drop(columns=["void", "simulated", "users", "cpu_cores_used"])
        .rename(columns=names)
        .map(str)
        .replace("", ABSENT)
    )


def to_markdown(texts: pandas.DataFrame) -> str:
    """A Markdown table; nothing that a name holds can end a cell or become HTML."""
    head = [f"| {' | '.join(texts.columns)} |", f"|{' --- |' * len(texts.columns)}"]
    rows = (" | ".join(html.escape(cell).replace("|", "\\|") for cell in row) for row in texts.itertuples(index=False))
    return "\n".join([*head, *(f"| {row} |" for row in rows), ""])


def to_html(texts: pandas.DataFrame) -> str:
    """A page of its own; every text is escaped."""
    head = "<!doctype html><meta charset='utf-8'><title>perfkit snapshot</title>"
    style = "<style>body{font-family:system-ui}td,th{padding:.2em .8em;text-align:left}</style>"
    return f"{head}{style}{texts.to_html(index=False, border=0, escape=True)}\n"
