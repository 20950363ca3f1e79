"""How does a call of the model get from the host to the device, kernel by kernel or as one graph?

The host launches a call in pieces; a piece can start on the device once it is launched and the piece
before it is over. So whoever is slower, host or device, sets the pace. Launching needs Python's lock:
either the timeline's model of it, or, on a real clock, the lock itself while the thread computes.
"""

from __future__ import annotations

from itertools import pairwise

from perfkit.clock import NS_PER_S, REAL_CLOCK, Clock, thread_cpu_ns
from perfkit.serving.devices.simulated.driver import Driver
from perfkit.serving.devices.simulated.engine import Operation, Stream
from perfkit.serving.devices.simulated.parts import HELD, LaunchParts
from perfkit.serving.devices.simulated.preset import HOST, Step

_GOES_ON = -1  # priority of whoever launches already: the lock is not handed over in the middle of a call


class Dispatch:
    """The way from host to device of one preset. Safe from several threads."""

    def __init__(self, parts: LaunchParts, driver: Driver, clock: Clock) -> None:
        self._pieces = parts.pieces()
        self._driver = driver
        self._is_whole = parts.is_free and parts.chunks == 1
        self._is_held = parts.lock == HELD and clock is REAL_CLOCK and not parts.is_free

    def launch(self, stream: Stream, host_steps: list[Step], kernels: Step) -> tuple[Operation, Operation] | None:
        """Queue a call's host work and then its kernels on a stream; the first and the last operation there.

        Blocks nobody, unless launching really holds Python's lock: then the caller computes that long.
        """
        driver, dispatch = self._driver, Stream()
        submitted = driver.submit(dispatch, host_steps)
        if submitted is not None:
            driver.await_operation(stream, submitted[1])
        if self._is_whole:
            return driver.submit(stream, [kernels])
        lengths = self._lengths(driver.draw_ns(kernels))
        if not self._is_held:
            return self._launch_modelled(stream, dispatch, kernels, lengths)
        if submitted is not None:
            driver.wait(submitted[1])
        return self._launch_held(stream, kernels, lengths)

    def _lengths(self, total_ns: int) -> list[int]:
        """How long each piece takes on the device; together exactly the whole."""
        bounds, share_so_far = [0], 0.0
        for _, share in self._pieces:
            share_so_far += share
            bounds.append(round(total_ns * share_so_far))
        return [end - start for start, end in pairwise(bounds)]

    def _launch_modelled(
        self, stream: Stream, dispatch: Stream, kernels: Step, lengths: list[int]
    ) -> tuple[Operation, Operation] | None:
        first: Operation | None = None
        for (host_s, _), length_ns in zip(self._pieces, lengths, strict=True):
            if host_s:
                launched = self._driver.submit(dispatch, [Step(HOST, host_s * NS_PER_S, 0.0)])
                dispatch.priority = _GOES_ON
                if launched is not None:
                    self._driver.await_operation(stream, launched[1])
            last = self._driver.submit_exactly(stream, kernels, length_ns)
            first = first or last
        return (first, last) if first is not None else None

    def _launch_held(self, stream: Stream, kernels: Step, lengths: list[int]) -> tuple[Operation, Operation] | None:
        first: Operation | None = None
        due_ns = float(thread_cpu_ns())
        for (host_s, _), length_ns in zip(self._pieces, lengths, strict=True):
            due_ns += host_s * NS_PER_S
            _compute_until(due_ns)
            last = self._driver.submit_exactly(stream, kernels, length_ns)
            first = first or last
        return (first, last) if first is not None else None


def _compute_until(due_ns: float) -> None:
    """Keep the processor, and Python's lock as far as other threads let it, up to an instant of the thread's own time.

    The thread's processor time is what counts: what others take of the processor meanwhile prolongs it.
    """
    while thread_cpu_ns() < due_ns:
        pass
