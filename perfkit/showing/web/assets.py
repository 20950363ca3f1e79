"""What JavaScript do the pictures need, and how does it go into a page?

Our own files lie beside this module; plotly.js comes from the installed plotly package and is loaded
once a page. Nothing here names an address: a page made from these texts asks no other machine.
"""

from __future__ import annotations

import json
import re
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from perfkit.errors import EnvironmentLacks

_FOLDER = Path(__file__).parent
_READY_EVENT = "perfkit-plotly-ready"  # chart.js waits for it under the same name
_IMPORT_OF_OURS = re.compile(r"^import \{[^}]*\} from \"\./[\w.]+\";\n", re.MULTILINE)
_TAG_OPENERS = re.compile(r"<(?=/script|!--)", re.IGNORECASE)


@cache
def chart_js() -> str:
    """The chart module: `drawChart(el, figure, options)`, and an anywidget as its default export."""
    return _joined("page.js", "chart.js")


@cache
def flame_js() -> str:
    """The flame graph module: `drawFlame(el, data, options)`, and an anywidget as its default export."""
    return _joined("page.js", "flame_tree.js", "flame_paint.js", "flame.js")


def _joined(*names: str) -> str:
    """Our files as one module that imports nothing: a notebook and a page on disk have nowhere to import from."""
    sources = (_IMPORT_OF_OURS.sub("", (_FOLDER / name).read_text("utf-8")) for name in names)
    return "\n".join(sources)


@cache
def plotly_js() -> str:
    """plotly.js of the installed plotly package, as a script that sets the global `Plotly`."""
    try:
        bundle = resources.files("plotly") / "package_data" / "plotly.min.js"
        return bundle.read_text("utf-8")
    except (ModuleNotFoundError, FileNotFoundError) as error:
        raise EnvironmentLacks(
            f"charts need plotly.js, which comes with the package plotly, and it is not here ({error}); "
            "install plotly 7 or later into this environment"
        ) from error


@cache
def plotly_module_js() -> str:
    """plotly.js as the ES module of an anywidget without a view: it loads the global and tells the charts."""
    tell = f'globalThis.dispatchEvent(new Event("{_READY_EVENT}"));'
    return f"{plotly_js()}\n{tell}\nexport default {{ initialize() {{}} }};\n"


def inline_script(source: str) -> str:
    """A script's text made safe between `<script>` tags, with its meaning unchanged.

    The end tag and the comment opener stand inside strings, templates or regular expressions, where the
    escaped bracket means the same.
    """
    return _TAG_OPENERS.sub(r"\\x3C", source)


def inline_json(value: Any) -> str:
    """A value as JSON that may stand in a `<script type="application/json">` block or in a script.

    NaN and infinities are refused: the browser's JSON parser does not read them.
    """
    return inline_text(json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")))


def inline_text(json_text: str) -> str:
    """JSON text with every character escaped that HTML or an old JavaScript parser would take for its own."""
    for character in "<>&\u2028\u2029":
        json_text = json_text.replace(character, f"\\u{ord(character):04x}")
    return json_text
