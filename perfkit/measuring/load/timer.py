"""How does an epoll loop wake at an exact nanosecond?

epoll's own time-out counts whole milliseconds. A timerfd is a descriptor that becomes readable at
an absolute instant of CLOCK_MONOTONIC; the standard library offers it from Python 3.13 on only.
"""

from __future__ import annotations

import contextlib
import ctypes
import os

from perfkit.clock import NS_PER_S

_CLOCK_MONOTONIC = 1
_TFD_NONBLOCK = os.O_NONBLOCK
_TFD_CLOEXEC = os.O_CLOEXEC
_TFD_TIMER_ABSTIME = 1
_libc = ctypes.CDLL(None, use_errno=True)


class _TimerSpec(ctypes.Structure):
    _fields_ = (
        ("interval_s", ctypes.c_long),
        ("interval_ns", ctypes.c_long),
        ("first_s", ctypes.c_long),
        ("first_ns", ctypes.c_long),
    )


class Timer:
    """A descriptor, `fd`, that turns readable at an instant. One thread."""

    def __init__(self) -> None:
        self.fd: int = _libc.timerfd_create(_CLOCK_MONOTONIC, _TFD_NONBLOCK | _TFD_CLOEXEC)
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create failed")

    def wake_at(self, instant_ns: int) -> None:
        """Turn readable once, at an instant; at once when it has passed."""
        self._set(max(1, instant_ns), 0)

    def wake_every(self, period_ns: int, from_ns: int) -> None:
        """Turn readable at an instant and once per period after it."""
        self._set(max(1, from_ns), period_ns)

    def acknowledge(self) -> None:
        """Make the descriptor unreadable until the next instant."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.fd, 8)

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self.fd)

    def _set(self, first_ns: int, interval_ns: int) -> None:
        spec = _TimerSpec(*divmod(interval_ns, NS_PER_S), *divmod(first_ns, NS_PER_S))
        if _libc.timerfd_settime(self.fd, _TFD_TIMER_ABSTIME, ctypes.byref(spec), None):
            raise OSError(ctypes.get_errno(), "timerfd_settime failed")
