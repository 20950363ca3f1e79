"""Which scripts does the page run, and how does it forbid every other one and every request?"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass

from markupsafe import Markup

from perfkit.showing.web import assets

_DRAW_CHARTS = """
for (const place of document.querySelectorAll("[data-figure]")) {
  const { figure, description } = place.dataset;
  drawChart(place, document.getElementById(figure).textContent, { description });
}
"""
_DRAW_FLAME = """
for (const place of document.querySelectorAll("[data-flame]")) {
  drawFlame(place, document.getElementById(place.dataset.flame).textContent);
}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """An inline script, safe between its tags."""

    text: Markup
    is_module: bool

    @property
    def digest(self) -> str:
        """How a content security policy names this script and no other."""
        return f"'sha256-{base64.b64encode(hashlib.sha256(self.text.encode()).digest()).decode()}'"


def page_scripts() -> tuple[Script, ...]:
    """plotly.js once, then the two modules with the calls that draw what the page holds."""
    return (
        Script(text=Markup(assets.inline_script(assets.plotly_js())), is_module=False),
        Script(text=Markup(assets.inline_script(assets.chart_js() + _DRAW_CHARTS)), is_module=True),
        Script(text=Markup(assets.inline_script(assets.flame_js() + _DRAW_FLAME)), is_module=True),
    )


def policy(scripts: tuple[Script, ...]) -> str:
    """The page's content security policy: these scripts by their digests, inline styles, and nothing from anywhere."""
    allowed = " ".join(script.digest for script in scripts)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
