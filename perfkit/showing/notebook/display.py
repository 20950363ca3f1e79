"""How does a notebook show a run, a scan or a contrast? As a table with grades, a scan with its curve.

While one is measured, the cell shows how far it is.

Registered by type name, so that neither IPython nor pandas is loaded before there is something to show, and
the measuring part knows nothing of pages.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from perfkit.measuring.audience import Tell, seat

if TYPE_CHECKING:
    from perfkit.measuring.comparing.comparison import Comparison
    from perfkit.measuring.experiment import Run
    from perfkit.measuring.scanning.contrast import Contrast
    from perfkit.measuring.scanning.grid import Scan

_RUN = ("perfkit.measuring.experiment", "Run")
_SCAN = ("perfkit.measuring.scanning.grid", "Scan")
_CONTRAST = ("perfkit.measuring.scanning.contrast", "Contrast")
_COMPARISON = ("perfkit.measuring.comparing.comparison", "Comparison")


def register(shell: Any | None = None) -> None:
    """Teach a shell, by default the one that runs, to show runs and scans; without a shell nothing happens."""
    from IPython import get_ipython

    shell = shell or get_ipython()
    if shell is None:
        return
    shell.display_formatter.mimebundle_formatter.for_type_by_name(*_RUN, _bundle)
    shell.display_formatter.mimebundle_formatter.for_type_by_name(*_CONTRAST, _bundle)  # its curves are in the contest
    shell.display_formatter.mimebundle_formatter.for_type_by_name(*_COMPARISON, _comparison_bundle)
    shell.display_formatter.ipython_display_formatter.for_type_by_name(*_SCAN, _show_scan)
    if _is_in_notebook(shell):
        seat(_told_in_the_cell)


def _is_in_notebook(shell: Any) -> bool:
    return hasattr(shell, "kernel")


def _told_in_the_cell() -> AbstractContextManager[Tell]:
    from perfkit.showing.notebook.progress import progress_line

    return progress_line()


def _bundle(result: Run | Scan | Contrast, include: Any = None, exclude: Any = None) -> dict[str, str]:
    from perfkit.showing.notebook.table import table_of, to_html, to_text

    table = table_of(result)
    return {"text/plain": to_text(table), "text/html": to_html(table)}


def _comparison_bundle(comparison: Comparison, include: Any = None, exclude: Any = None) -> dict[str, str]:
    from perfkit.showing.notebook.comparison import to_html

    return {"text/plain": repr(comparison), "text/html": to_html(comparison)}


def _show_scan(scan: Scan) -> None:
    """Two outputs: a page shows but one form of each, and the table is to survive the end of the kernel."""
    from IPython import get_ipython
    from IPython.display import display

    display(_bundle(scan), raw=True)  # type: ignore[no-untyped-call]
    if _is_in_notebook(get_ipython()) and len(scan.points) > 1:
        from perfkit.showing.notebook.views import curve

        display(curve(scan))  # type: ignore[no-untyped-call]
