"""How do perfkit's widgets look alike? One style for what each puts around its chart, in JupyterLab's own colours."""

from __future__ import annotations


def style_of(widget: str) -> str:
    """The HTML that styles everything inside a box with this CSS class: `quiet` remarks, `error` texts, paragraphs."""
    return f"""<style>
.{widget} .quiet {{ opacity: 0.8; }}
.{widget} .error {{ color: var(--jp-error-color1, #d32f2f); font-weight: 600; overflow-wrap: anywhere; }}
.{widget} .widget-html-content {{ line-height: 1.5; white-space: normal; margin: 0; }}
</style>"""
