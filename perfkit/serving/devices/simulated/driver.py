"""How do real threads share one timeline? They move it on to now under one lock, and sleep outside it.

There is no device thread. Whoever submits, asks or waits advances the timeline first; what ended
meanwhile is replayed at its exact instant, so a late or a long sleep adds nothing to any duration.
"""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock

from perfkit.clock import NS_PER_S, Clock
from perfkit.serving.devices.simulated.engine import Operation, Stream
from perfkit.serving.devices.simulated.preset import COMPUTE, DEVICE_ENGINES, Preset, Step
from perfkit.serving.devices.simulated.service import ServiceTimes
from perfkit.serving.devices.simulated.timeline import Timeline
from perfkit.serving.devices.simulated.view import (
    POWER_WINDOW_NS,
    WINDOW_NS,
    Activity,
    utilisation_ratio,
    weighed_ratio,
)


class Driver:
    """A timeline in the time of a clock. Thread-safe."""

    def __init__(self, preset: Preset, clock: Clock, seed: int) -> None:
        self._clock = clock
        self._lock = Lock()  # guards _timeline and _times, and with them every stream and operation
        self._started_ns = clock.now_ns()
        self._timeline = Timeline(preset.engines, seed, self._started_ns)
        self._times = ServiceTimes(seed + 1)

    def submit(self, stream: Stream, steps: Iterable[Step]) -> tuple[Operation, Operation] | None:
        """Append work to a stream now; its first and last operation, None when there is no work."""
        first = last = None
        with self._lock:
            now_ns = self._clock.now_ns()
            for step in steps:
                length_ns = self._times.draw_ns(step.mean_ns, step.cv)
                last = self._timeline.submit(stream, step.engine, length_ns, now_ns, step.share)
                first = first or last
        return (first, last) if first and last else None

    def draw_ns(self, step: Step) -> int:
        """How long a piece of work takes this time."""
        with self._lock:
            return self._times.draw_ns(step.mean_ns, step.cv)

    def submit_exactly(self, stream: Stream, step: Step, length_ns: int) -> Operation:
        """Append work of a known length to a stream now."""
        with self._lock:
            return self._timeline.submit(stream, step.engine, length_ns, self._clock.now_ns(), step.share)

    def come_to_rest(self, step: Step) -> None:
        """Block the calling thread until all the device's work so far is over, and then for one step more."""
        stream = Stream()
        with self._lock:
            self._timeline.advance(self._clock.now_ns())
            for operation in self._timeline.unfinished(DEVICE_ENGINES):
                self._timeline.await_operation(stream, operation)
        submitted = self.submit(stream, [step])
        if submitted is not None:
            self.wait(submitted[1])

    def await_operation(self, stream: Stream, operation: Operation) -> None:
        """Let the stream's next work start after an operation."""
        with self._lock:
            self._timeline.advance(self._clock.now_ns())
            self._timeline.await_operation(stream, operation)

    def tail(self, stream: Stream) -> tuple[Operation | None, int]:
        """The stream's last operation if it still runs or waits, and the time."""
        with self._lock:
            now_ns = self._clock.now_ns()
            self._timeline.advance(now_ns)
            tail = stream.tail
            return (None if tail is None or tail.has_ended(now_ns) else tail), now_ns

    def has_ended(self, operation: Operation) -> bool:
        """Whether an operation is over now."""
        with self._lock:
            now_ns = self._clock.now_ns()
            self._timeline.advance(now_ns)
            return operation.has_ended(now_ns)

    def wait(self, operation: Operation) -> None:
        """Block the calling thread until an operation is over.

        The sleep ends at the earliest instant at which that can be; then the thread looks again,
        because others may have gone first.
        """
        while True:
            with self._lock:
                now_ns = self._clock.now_ns()
                self._timeline.advance(now_ns)
                if operation.has_ended(now_ns):
                    return
                until_ns = self._timeline.earliest_end_ns(operation)
            self._clock.sleep_until(until_ns)

    def busy_s(self) -> dict[str, float]:
        """Busy seconds of every engine since the start; side by side counts twice."""
        with self._lock:
            now_ns = self._clock.now_ns()
            self._timeline.advance(now_ns)
            engines = self._timeline.engines.items()
            return {name: engine.busy_ns(now_ns) / NS_PER_S for name, engine in engines if not engine.is_delay}

    def utilisation_ratio(self) -> float:
        """Share of the last sixth of a second with at least one kernel."""
        return self.activity().utilisation_ratio

    def activity(self) -> Activity:
        """What the board's meters go by, at this instant."""
        with self._lock:
            now_ns = self._clock.now_ns()
            self._timeline.advance(now_ns)
            compute = self._timeline.engines[COMPUTE]
            return Activity(
                time_ns=now_ns,
                since_start_s=(now_ns - self._started_ns) / NS_PER_S,
                utilisation_ratio=utilisation_ratio(compute.intervals, now_ns),
                sm_active_ratio=weighed_ratio(compute.runs, now_ns - WINDOW_NS, now_ns),
                sm_active_of_late_ratio=weighed_ratio(compute.runs, now_ns - POWER_WINDOW_NS, now_ns),
                sm_active_s=compute.shared_ns(now_ns) / NS_PER_S,
            )
