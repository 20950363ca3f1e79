"""Which knobs does the panel have, and where do they stand at first?"""

from __future__ import annotations

from typing import Any

import ipywidgets

from perfkit.settings.server import ServerSettings

MS_PER_S = 1e3
CONCURRENCY, WINDOW = "concurrency", "batch.max_delay_s"
_FIRST_CONCURRENCY = 8


def make_sliders(settings: ServerSettings) -> dict[str, Any]:
    """A slider for each setting, by its dotted name, and one for the load's concurrency."""
    can_batch = settings.topology == "staged"
    window_ms = settings.batch.max_delay_s * MS_PER_S
    return {
        "workers": _whole("worker threads", settings.workers, 16, "threads that run the model"),
        "batch.max_size": _whole(
            "max batch",
            settings.batch.max_size,
            32,
            "most requests in one call of the model",
            can_batch,
        ),
        WINDOW: ipywidgets.FloatSlider(
            value=window_ms,
            min=0.0,
            max=max(50.0, window_ms),
            step=1.0,
            readout_format=".0f",
            description="window (ms)",
            tooltip="how long a batch waits for more requests",
            disabled=not can_batch,
            **_shared(),
        ),
        CONCURRENCY: _whole("users", _FIRST_CONCURRENCY, 64, "requests in flight, from the next run on"),
    }


def _whole(text: str, value: int, most: int, tooltip: str, enabled: bool = True) -> Any:
    return ipywidgets.IntSlider(
        value=value,
        min=1,
        max=max(most, value),
        description=text,
        tooltip=tooltip,
        disabled=not enabled,
        **_shared(),
    )


def _shared() -> dict[str, Any]:
    # Only where the handle is let go: each stop on the way would rebuild the server's threads.
    return {"continuous_update": False, "style": {"description_width": "110px"}, "layout": {"width": "96%"}}
