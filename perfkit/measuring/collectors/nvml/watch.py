"""What does one GPU tell at this instant, field by field, and what has it not told, and why?

Each field is asked on its own. A field whose every way fails for good is not asked again; one that
fails for once is asked at its next turn; a GPU that is lost is left alone for the rest of the run.
Absent is not zero: a field that failed leaves no row, and its reason is kept.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from perfkit.clock import NS_PER_S, Clock
from perfkit.measuring.collectors.nvml.failure import Failure, attempt
from perfkit.measuring.collectors.nvml.fields import FIELDS, Datum, Field, Nvml
from perfkit.measuring.collectors.nvml.gpm import Gpm
from perfkit.measuring.collectors.nvml.history import ProcessUtilisation, UtilisationHistory
from perfkit.measuring.collectors.nvml.library import Gpu
from perfkit.measuring.collectors.series import Reading

_ON_MIG = "not available on MIG: NVML gives it for no part of a divided GPU, and a zero there says nothing; DCGM has it"


@dataclass(slots=True, kw_only=True)
class _State:
    """How a field has fared so far. Used by one thread."""

    field: Field
    ways: list[Callable[..., list[Datum]]]
    answers: int = 0
    readings: int = 0  # answers that held something: a buffer may be empty, a difference needs two looks
    failures: int = 0
    reason: str | None = None
    lesser: list[str] = dataclasses.field(default_factory=list)  # why the better ways were given up


@dataclass(frozen=True, slots=True)
class Answer:
    """The rows of one call, by the instant they belong to."""

    time_ns: int
    readings: list[Reading]


class GpuWatch:
    """The fields of one GPU. Used by one thread."""

    def __init__(self, nvml: Nvml, gpu: Gpu, clock: Clock, epoch_ns: Callable[[], int]) -> None:
        self.gpu = gpu
        self._nvml = nvml
        self._clock = clock
        self._gpm = Gpm(clock)
        self._lost: str | None = None
        self._states = [
            _State(field=one, ways=list(one.ways))
            for one in (
                *FIELDS,
                Field(name="history", ways=(UtilisationHistory(clock, epoch_ns),), is_slow=True, has_mig=False),
                Field(name="process_util", ways=(ProcessUtilisation(clock, epoch_ns),), is_slow=True, has_mig=False),
                Field(name="gpm", ways=(self._gpm,)),
            )
        ]
        for state in self._states:
            if gpu.is_mig and not state.field.has_mig:
                state.ways, state.reason = [], _ON_MIG

    def read(self, is_slow_turn: bool) -> Iterator[Answer]:
        """Ask what is due; the stamps before and after each call are the row's time and `<field>_call` (s)."""
        for state in self._states:
            if self._lost is None and state.ways and (is_slow_turn or not state.field.is_slow):
                yield from self._ask(state)

    def _ask(self, state: _State) -> Iterator[Answer]:
        before_ns = self._clock.now_ns()
        data = attempt(lambda: state.ways[0](self._nvml, self.gpu.handle))
        call_s = (self._clock.now_ns() - before_ns) / NS_PER_S
        if isinstance(data, Failure):
            self._note(state, data)
            if data.is_final and state.ways:
                yield from self._ask(state)  # the next best way, at once
            return
        state.answers += 1
        state.readings += bool(data)
        source = f"gpu:{self.gpu.uuid}"
        now = [_reading(source, datum) for datum in data if datum.time_ns is None]
        yield Answer(before_ns, [*now, Reading(source, f"{state.field.name}_call", "s", call_s)])
        for datum in data:
            if datum.time_ns is not None:
                yield Answer(datum.time_ns, [_reading(source, datum)])

    def _note(self, state: _State, failure: Failure) -> None:
        if failure.is_lost:
            self._lost = failure.reason
        elif failure.is_final:
            state.ways.pop(0)
            if state.ways:
                state.lesser.append(failure.reason)
                return
        state.failures += 1
        state.reason = state.reason or "; ".join(dict.fromkeys([*state.lesser, failure.reason]))

    def close(self) -> None:
        """Give the driver's memory back."""
        attempt(lambda: self._gpm.close(self._nvml))

    def facts(self) -> dict[str, Any]:
        """The GPU's identity, and of each field whether it was told: plain JSON values."""
        return {
            "uuid": self.gpu.uuid,
            "index": self.gpu.index,
            "name": self.gpu.name,
            "mig": self.gpu.is_mig,
            "lost": self._lost,
            "missing": dict(self._missing()),
            "failed": {
                state.field.name: {"failures": state.failures, "readings": state.readings, "reason": state.reason}
                for state in self._states
                if state.failures and state.readings
            },
        }

    def _missing(self) -> Iterator[tuple[str, str]]:
        for state in self._states:
            if state.reason and not state.readings:
                yield state.field.name, state.reason
            elif not state.answers:
                yield state.field.name, self._lost or "it was never asked"
        for name, failure in self._gpm.failures.items():
            yield name, failure.reason


def _reading(source: str, datum: Datum) -> Reading:
    whose = f"{source}:{datum.part}" if datum.part else source
    return Reading(whose, datum.name, datum.unit, datum.value)
