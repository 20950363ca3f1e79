"""What do the threads execute while the service is under load? Flame-graph recordings, never a measurement.

The three kinds of samples (default, GIL holders, idle included) are recorded one after the other,
each on its own: they answer different questions and must not be added. Sampling slows the service,
so the run is marked as profiled and its figures are void.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from perfkit.errors import ArchiveError, CollectorUnavailable, ConfigError
from perfkit.measuring.collectors.collector import Recording, Target
from perfkit.measuring.collectors.pyspy import DEFAULT_RATE_HZ, MODES, PySpy
from perfkit.measuring.experiment import RUNS_FOLDER, Run, certify, record, save, watched
from perfkit.measuring.load.loops import Load
from perfkit.measuring.phase import Plan, Progress, Watch, check_seconds, find_payloads
from perfkit.measuring.service import Service

_MOST_ATTACH_S = 20.0  # per recording, on a machine whose cores are all taken; the load ends with the last recording


class StackSequence:
    """Collector of several kinds of stacks, one after the other, on a thread of its own. Used by one thread."""

    name = "stacks"

    def __init__(self, seconds: float, modes: Sequence[str], rate_hz: int = DEFAULT_RATE_HZ) -> None:
        self._seconds = seconds
        self._collectors = [PySpy(mode, rate_hz) for mode in modes]
        self._recordings: list[Recording] = []
        self._notes: list[str] = []
        self._is_load_over = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def is_recording(self) -> bool:
        """Whether there is anything left to record."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, target: Target) -> None:
        """Attach for the first kind; raises CollectorUnavailable when that is not possible."""
        first = self._collectors[0]
        first.start(target)
        self._thread = threading.Thread(target=self._record, args=(target,), name="perfkit-stacks", daemon=True)
        self._thread.start()

    def stop(self) -> Recording:
        """End what still records, since the load is over, and hand everything over."""
        assert self._thread is not None
        self._is_load_over.set()
        self._thread.join()
        return Recording(
            name=self.name,
            series=[],
            files=tuple(path for recording in self._recordings for path in recording.files),
            notes=(*self._notes, *(f"{part.name}: {note}" for part in self._recordings for note in _remarks(part))),
        )

    def _record(self, target: Target) -> None:
        for number, collector in enumerate(self._collectors):
            try:
                if number:
                    self._require_load()
                    collector.start(target)
                self._is_load_over.wait(self._seconds)
                self._recordings.append(collector.stop())
            except (CollectorUnavailable, ArchiveError, OSError) as error:
                self._notes.append(f"{collector.name}: {error}")

    def _require_load(self) -> None:
        if self._is_load_over.is_set():
            raise CollectorUnavailable("the load ended before its turn came; give more seconds")


def _remarks(recording: Recording) -> list[str]:
    return [*recording.notes, *([recording.missing] if recording.missing else [])]


def profile(
    service: Service, load: Load, seconds: float = 5.0, out: Path | None = None, watch: Watch | None = None
) -> Run:
    """Record every kind of stacks for `seconds` each while the load runs; archive them under `out`.

    Raises CollectorUnavailable with the remedy when nothing could be recorded, TargetFailed when the
    service dies.
    """
    check_seconds(seconds)
    if service.pid is None:
        raise ConfigError("the service's process is not known; profile a service that perfkit launched")
    plan = Plan(
        load=load,
        seconds=len(MODES) * (seconds + _MOST_ATTACH_S),
        payloads=find_payloads(service, load),
        round_index=0,
    )
    stacks = StackSequence(seconds, MODES)
    with watched(watch, "recording stacks", len(MODES) * seconds) as watching:

        def is_over(progress: Progress) -> bool:
            return bool(watching(progress)) or not stacks.is_recording

        contents = record(service, plan, [stacks], is_over)
    if not contents.stacks:
        raise CollectorUnavailable("; ".join(contents.manifest.notes) or "py-spy recorded nothing")
    return save(certify(contents, {}, profiled=True), out or RUNS_FOLDER)
