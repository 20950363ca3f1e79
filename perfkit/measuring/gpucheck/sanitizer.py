"""Does torch's own checker of stream order find anything? It has to be told before the streams are used.

It watches the calling thread only, and once imported it stays hooked into torch: for the last check.
"""

from __future__ import annotations

from collections.abc import Callable


def reports_of(serve: Callable[[], None]) -> list[str]:
    """Run something under the sanitizer; what it reported, the first report being where it stopped."""
    from torch.cuda import _sanitizer

    watcher = _sanitizer.cuda_sanitizer
    watcher.enable()  # type: ignore[no-untyped-call]
    try:
        serve()
    except _sanitizer.CUDASanitizerErrors as found:
        return [str(error) for error in found.errors]
    finally:
        watcher.disable()  # type: ignore[no-untyped-call]
    return []
