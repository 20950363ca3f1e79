"""Given the time and what was submitted, what has started and ended on the simulated device?

The timeline is pure: no thread, no clock. Its owner tells it the time; `advance` then replays every
start and end up to that instant in order, so a late caller changes no figure. An operation starts
when its stream and whatever it waits for are done and its engine has a free slot; a smaller
priority goes first, then (policy fifo) the one that became ready first. Nothing is interrupted.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterable, Mapping

from perfkit.serving.devices.simulated.engine import Engine, EngineSpec, Operation, Stream


class Timeline:
    """Engines, and the ends that are still to come. Not thread-safe: its owner guards it with one lock."""

    def __init__(self, engines: Mapping[str, EngineSpec], seed: int = 0, start_ns: int = 0) -> None:
        rng = random.Random(seed)
        self.engines = {name: Engine(spec, rng) for name, spec in engines.items()}
        self.now_ns = start_ns
        self._ends: list[tuple[int, int, Operation]] = []
        self._begun = 0

    def submit(self, stream: Stream, engine: str, duration_ns: int, now_ns: int, share: float = 0.0) -> Operation:
        """Append an operation to a stream at an instant that must not lie before the last one told."""
        if now_ns > self.now_ns:
            self.advance(now_ns)
        operation = Operation(self.engines[engine], duration_ns, stream.priority, share)
        blockers = [other for other in stream.awaited if not other.has_ended(self.now_ns)] if stream.awaited else []
        if stream.tail is not None and not stream.tail.has_ended(self.now_ns):
            blockers.append(stream.tail)
        stream.tail = operation
        stream.awaited = []
        if blockers:
            self._hold_back(operation, blockers)
        else:
            operation.engine.enqueue(operation)
            self._start_waiting(operation.engine, self.now_ns)
            self.advance(self.now_ns)  # an operation of no length ends at once
        return operation

    def await_operation(self, stream: Stream, operation: Operation) -> None:
        """Let the stream's next operation start no earlier than the end of another one."""
        if not operation.has_ended(self.now_ns):
            stream.awaited.append(operation)

    def advance(self, now_ns: int) -> None:
        """Replay everything that starts or ends up to an instant."""
        ends = self._ends
        while ends and ends[0][0] <= now_ns:
            self.step()
        if now_ns > self.now_ns:
            self.now_ns = now_ns

    def step(self) -> list[Operation]:
        """Move to the next instant at which something ends, and return what ended there.

        All ends of one instant are taken before anything starts, so that priority decides between
        operations that become ready together.
        """
        ends = self._ends
        at_ns = ends[0][0]
        self.now_ns = at_ns
        ended = [heapq.heappop(ends)[2]]
        while ends and ends[0][0] == at_ns:
            ended.append(heapq.heappop(ends)[2])
        touched: list[Engine] = []
        for operation in ended:
            self._finish(operation, touched)
        for engine in touched:
            self._start_waiting(engine, at_ns)
        return ended

    def earliest_end_ns(self, operation: Operation) -> int:
        """An instant before which an operation can not end: exact once it has started.

        Whoever waits for it may sleep until then and look again; an operation of higher priority
        may have overtaken it meanwhile.
        """
        after_ns = 0
        while operation.ended_ns is None:
            after_ns += operation.duration_ns
            if not operation.open_blockers:
                return operation.engine.wait_bound_ns(operation, self.now_ns) + after_ns
            operation = next(other for other in operation.blockers if not other.has_ended(self.now_ns))
        return operation.ended_ns + after_ns

    def unfinished(self, engines: Iterable[str]) -> list[Operation]:
        """Every operation of some engines that has not ended, also those that wait for others first."""
        wanted = [self.engines[name] for name in engines]
        seen: dict[int, Operation] = {}
        open_ones = [operation for engine in self.engines.values() for operation in engine.waiting()]
        open_ones += [operation for _, _, operation in self._ends]
        while open_ones:
            operation = open_ones.pop()
            if id(operation) not in seen:
                seen[id(operation)] = operation
                open_ones += operation.followers or ()
        return [operation for operation in seen.values() if operation.engine in wanted]

    def _hold_back(self, operation: Operation, blockers: list[Operation]) -> None:
        operation.blockers = tuple(blockers)
        operation.open_blockers = len(blockers)
        for blocker in blockers:
            if blocker.followers is None:
                blocker.followers = [operation]
            else:
                blocker.followers.append(operation)

    def _finish(self, operation: Operation, touched: list[Engine]) -> None:
        operation.engine.release(operation)
        touched.append(operation.engine)
        operation.blockers = ()  # a stream would else keep its whole past alive
        for follower in operation.followers or ():
            follower.open_blockers -= 1
            if follower.open_blockers == 0:
                follower.engine.enqueue(follower)
                touched.append(follower.engine)
        operation.followers = None

    def _start_waiting(self, engine: Engine, at_ns: int) -> None:
        while (operation := engine.take_next()) is not None:
            self._begun += 1  # between ends of one instant the order of the starts decides
            heapq.heappush(self._ends, (engine.begin(operation, at_ns), self._begun, operation))
