"""How is there always a child to ask, although children die?

An outpost is manned by one child. A thread of its own waits for the child's end, so that a death is
noticed at once, idle or not, and puts another in its place. Who asks meanwhile waits for the
successor; only when children die again and again are calls refused instead.
"""

from __future__ import annotations

import dataclasses
import logging
import threading
from concurrent.futures import Future
from typing import Any

from perfkit.clock import REAL_CLOCK, Clock
from perfkit.serving.scheduling.restarts import Restarts
from perfkit.serving.server.elsewhere.child import Child, ChildDied, ChildSpec, Hello
from perfkit.settings.server import ServerSettings

_GRACE_S = 2.0  # for an idle child that was hung up on to leave by itself
_log = logging.getLogger("perfkit.server")


def model_outpost(name: str, settings: ServerSettings, warm_up_sizes: tuple[int, ...]) -> Outpost:
    """An outpost whose child runs batches, on weights of its own."""
    threads, sizes = settings.intra_op_threads, warm_up_sizes or (1,)
    return Outpost(name, ChildSpec(settings=settings, intra_op_threads=threads, warm_up_sizes=sizes))


def outposts(name: str, count: int, settings: ServerSettings) -> list[Outpost]:
    """Outposts of one pool at a setting; nothing is started yet."""
    spec = ChildSpec(settings=settings, intra_op_threads=1)  # as in a pool of threads: one call must not take all cores
    return [Outpost(f"{name}-{index}", spec) for index in range(count)]


class Outpost:
    """One place that a child mans. One thread asks; any may look."""

    def __init__(self, name: str, spec: ChildSpec, clock: Clock = REAL_CLOCK) -> None:
        self.name = name
        self.ready: Future[Hello] = Future()  # of the first child, or why it cannot start
        self.hello: Hello | None = None  # of the present child
        self.deaths = 0
        self._spec = spec
        self._clock = clock
        self._restarts = Restarts()
        self._changed = threading.Condition()  # guards _child, _latest, hello, _is_failing and _is_closing
        self._child: Child | None = None  # ready to be asked
        self._latest: Child | None = None  # running, but perhaps still loading
        self._is_failing = False
        self._is_closing = False
        self._watcher = threading.Thread(target=self._watch, name=f"{name}-watch", daemon=True)

    def place_on(self, cpus: tuple[int, ...] | None) -> None:
        """Say before the start on which cores its children run; None = on those of this process's spawning thread."""
        self._spec = dataclasses.replace(self._spec, cpus=cpus)

    def start(self) -> None:
        """Start the first child; `ready` tells how it went."""
        self._watcher.start()

    def await_child(self) -> Child | None:
        """Block until there is a child to ask; None when there will be none soon."""
        with self._changed:
            self._changed.wait_for(lambda: self._child is not None or self._is_failing or self._is_closing)
            return self._child

    def ask(self, message: bytes) -> bytes:
        """Send a call to the child and wait for its reply; raises ChildDied."""
        while True:
            child = self.await_child()
            if child is None:
                raise ChildDied(f"{self.name} has no process: its processes end one after the other; see the log")
            try:
                return child.ask(message)
            except ConnectionError:  # it died without having read the call, which is none of the reasons
                self._dismiss(child)
            except (EOFError, OSError):
                self._dismiss(child)
                raise ChildDied(f"{self.name}, process {child.pid}, ended while it had the request") from None

    def close(self) -> None:
        """End the child, which nobody may be asking any more. Blocks."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
            child, latest = self._child, self._latest
        if child is not None:
            child.hang_up()
            self._watcher.join(_GRACE_S)
        if latest is not None and self._watcher.is_alive():
            latest.kill()
        if self._watcher.ident is not None:
            self._watcher.join()

    @property
    def is_manned(self) -> bool:
        """Whether there is a child to ask."""
        return self._child is not None

    def stats(self) -> dict[str, Any]:
        """Who mans it at present, what holds inside that process, and how many died before it."""
        with self._changed:
            hello, is_manned = self.hello, self._child is not None
        facts = dataclasses.asdict(hello) if hello is not None and is_manned else {"pid": None}
        return {"name": self.name, **facts, "deaths": self.deaths}

    def _watch(self) -> None:
        try:
            child: Child | None = self._hire()
        except BaseException as error:  # reaches the owner through `ready`
            self.ready.set_exception(error)
            return
        assert self.hello is not None, "who was hired has said hello"
        self.ready.set_result(self.hello)
        while child is not None:
            code = child.wait()
            if self._is_closing:
                return
            self._dismiss(child)
            self.deaths += 1
            _log.error("%s: process %d ended with %d; another takes its place", self.name, child.pid, code)
            child = self._succeed()

    def _hire(self) -> Child:
        """A child that has loaded its model and is ready; raises TargetFailed, or what starting a process raises."""
        child = Child(self._spec)
        with self._changed:
            self._latest = child
            if self._is_closing:
                child.kill()
        hello = child.greet()
        with self._changed:
            self._child, self.hello, self._is_failing = child, hello, False
            self._changed.notify_all()
        return child

    def _dismiss(self, child: Child) -> None:
        """Ask this child no more."""
        with self._changed:
            if self._child is child:
                self._child = None

    def _succeed(self) -> Child | None:
        """The next child, after the pause that the deaths so far ask for; None when the outpost closes first."""
        while not self._pause(self._restarts.died(self._clock.now_ns())):
            try:
                return self._hire()
            except Exception as error:
                _log.error("%s: no process could take the place: %s", self.name, error)
        return None

    def _pause(self, pause_ns: int) -> bool:
        """Wait; True when the outpost closes meanwhile."""
        now_ns = self._clock.now_ns()
        with self._changed:
            self._is_failing = self._restarts.is_looping(now_ns)
            self._changed.notify_all()
            while not self._is_closing and self._clock.now_ns() < now_ns + pause_ns:
                self._clock.wait(self._changed, now_ns + pause_ns)
            return self._is_closing
