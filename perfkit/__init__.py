"""Where does each millisecond of a threaded inference service go, and which setting serves best?

Names are loaded on first use, so that `import perfkit` needs none of torch, pandas or Jupyter.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from perfkit.measuring.comparing.interleaving import compare
    from perfkit.measuring.experiment import Run, measure
    from perfkit.measuring.load.loops import ClosedLoop, OpenLoop
    from perfkit.measuring.scanning.grid import Scan, scan
    from perfkit.measuring.service import Service, attach, launch
    from perfkit.settings.server import ServerSettings
    from perfkit.showing.notebook.views import flame

_HOMES = {
    "ClosedLoop": "perfkit.measuring.load.loops",
    "OpenLoop": "perfkit.measuring.load.loops",
    "Run": "perfkit.measuring.experiment",
    "Scan": "perfkit.measuring.scanning.grid",
    "ServerSettings": "perfkit.settings.server",
    "Service": "perfkit.measuring.service",
    "attach": "perfkit.measuring.service",
    "compare": "perfkit.measuring.comparing.interleaving",
    "flame": "perfkit.showing.notebook.views",
    "launch": "perfkit.measuring.service",
    "load_ipython_extension": "perfkit.showing.notebook.magic",  # %load_ext perfkit
    "measure": "perfkit.measuring.experiment",
    "scan": "perfkit.measuring.scanning.grid",
}

__all__ = [
    "ClosedLoop",
    "OpenLoop",
    "Run",
    "Scan",
    "ServerSettings",
    "Service",
    "attach",
    "compare",
    "flame",
    "launch",
    "measure",
    "scan",
]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'perfkit' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))


if "IPython" in sys.modules:  # a notebook: runs and scans show themselves as tables and curves
    importlib.import_module("perfkit.showing.notebook.display").register()
