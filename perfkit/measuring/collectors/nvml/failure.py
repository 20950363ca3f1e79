"""Why is a figure of the GPU not available? In words, and with what follows from it.

NVML answers with a number. The same number means different things in different places, so a
reason keeps NVML's own name for it and adds what is usual behind it and what helps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

NOT_SUPPORTED = 3
NOT_FOUND = 6
LIBRARY_NOT_FOUND = 12
FUNCTION_NOT_FOUND = 13
GPU_IS_LOST = 15
RESET_REQUIRED = 16

_MEANINGS = {
    1: "the library is not initialised; the driver may have been reloaded",
    2: "the driver does not know what it was asked for; a newer driver may",
    NOT_SUPPORTED: "this GPU or its driver does not offer it",
    4: "it needs a privilege that this process has not got; ask the administrator, or run as root",
    NOT_FOUND: "the driver has nothing on record",
    7: "the driver wanted a larger buffer than it had said",
    9: "the driver is not loaded; load it, or give the container or sandbox its devices",
    10: "the driver did not answer in time",
    LIBRARY_NOT_FOUND: "no libnvidia-ml.so.1 here; install NVIDIA's driver, or let the container see it",
    FUNCTION_NOT_FOUND: "the driver is older than this function; a newer driver has it",
    GPU_IS_LOST: "the GPU is lost: it fell off the bus or was reset; see the kernel's log, then restart the machine",
    RESET_REQUIRED: "the GPU needs a reset",
    17: "the operating system blocked it; in a sandbox the call may not be passed on",
    18: "the driver's library and its kernel module differ in version; restart the machine after the update",
    20: "the driver has run out of memory",
    21: "the driver has no data yet",
    25: "the driver does not know this version of the question; a newer driver does",
    999: "no cause was given; in a sandbox or microVM the call may not be passed on",
}
# What holds for as long as the driver and the GPU are the same: asking again is in vain.
_FINAL = frozenset({NOT_SUPPORTED, 2, 4, LIBRARY_NOT_FOUND, FUNCTION_NOT_FOUND, 25})


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One answer that was none. `code` is NVML's number; None when the answer itself made no sense."""

    code: int | None
    reason: str

    @property
    def is_final(self) -> bool:
        """Whether asking again would be in vain."""
        return self.code in _FINAL

    @property
    def is_lost(self) -> bool:
        """Whether the whole GPU is gone."""
        return self.code in (GPU_IS_LOST, RESET_REQUIRED)


class Nonsense(ValueError):
    """The driver answered, but with a value that cannot be."""


def from_code(code: int, name: str = "") -> Failure:
    """The failure behind one of NVML's return values, with the name that NVML itself gives it."""
    meaning = _MEANINGS.get(code, "a cause that perfkit does not know")
    return Failure(code=code, reason=f"{meaning} (NVML {code}{f', {name}' if name else ''})")


def attempt(call: Callable[[], T]) -> T | Failure:
    """What a call gives, or why it gave nothing. Raises nothing: a foreign library may fail in any way."""
    try:
        return call()
    except Nonsense as error:
        return Failure(code=None, reason=str(error))
    except Exception as error:  # the binding decodes and converts what the driver wrote, and trips over some of it
        code = getattr(error, "value", None)
        if isinstance(code, int):
            return from_code(code, _name(error))
        if type(error).__name__ == "NVMLLibraryMismatchError":  # the binding's other word for a function that is absent
            return from_code(FUNCTION_NOT_FOUND)
        return Failure(code=None, reason=f"the answer could not be read ({type(error).__name__}: {error})")


def _name(error: Exception) -> str:
    try:
        return str(error)
    except Exception:  # the binding asks the library for the name, which may be the very thing that is broken
        return ""
