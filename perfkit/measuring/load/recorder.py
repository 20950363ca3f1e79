"""What became of every request? One row each, and counts that must add up to what was scheduled."""

from __future__ import annotations

from collections import Counter

from perfkit.measuring.load.channel import Channel
from perfkit.measuring.load.outcomes import error_kind
from perfkit.measuring.load.samples import ROW, SampleWriter
from perfkit.records import EndState

_OK = int(EndState.OK)
_pack = ROW.pack
_NO_CHANNEL = "no free connection in time"
_FAULT_TEXTS = 20  # different reasons kept; a service can make up new ones without end


class Recorder:
    """Writes samples and counts how requests ended. One thread."""

    def __init__(self, samples: SampleWriter) -> None:
        self._add = samples.add
        self._outcomes = [0] * len(EndState)
        self._errors: Counter[str] = Counter()
        self._faults: Counter[str] = Counter()
        self._retried: Counter[str] = Counter()
        self._unsent = 0

    def record(self, channel: Channel, outcome: int, status: int, now_ns: int) -> None:
        """Keep one request that a channel carried, or tried to."""
        self._add(
            _pack(
                channel.request_id,
                channel.payload,
                channel.scheduled_ns,
                channel.sent_ns,
                now_ns if status else 0,
                status,
                outcome,
                channel.bytes_sent,
                channel.bytes_received,
            )
        )
        self._outcomes[outcome] += 1
        if outcome != _OK:
            self._unsent += channel.sent_ns == 0
            self._count_error(outcome, status, channel.fault)

    def record_unsent(
        self, request_id: int, payload: int, scheduled_ns: int, outcome: EndState, fault: str = _NO_CHANNEL
    ) -> None:
        """Keep one request that ended without a connection."""
        self._add(_pack(request_id, payload, scheduled_ns, 0, 0, 0, int(outcome), 0, 0))
        self._outcomes[outcome] += 1
        self._unsent += 1
        self._count_error(int(outcome), 0, fault)

    def count_retried(self, outcome: int, status: int) -> None:
        """Count an attempt that failed and is followed by another; the request has not ended."""
        self._retried[error_kind(outcome, status)] += 1

    def _count_error(self, outcome: int, status: int, fault: str) -> None:
        self._errors[error_kind(outcome, status)] += 1
        if status:
            return
        if fault in self._faults or len(self._faults) < _FAULT_TEXTS:
            self._faults[fault] += 1

    @property
    def sent(self) -> int:
        """How many requests left for the service, at least in part."""
        return sum(self._outcomes) - self._unsent

    @property
    def outcomes(self) -> dict[str, int]:
        """How often each end state came up, those that did."""
        return {state.label: self._outcomes[state] for state in EndState if self._outcomes[state]}

    @property
    def errors(self) -> dict[str, int]:
        """How often each kind of error came up."""
        return dict(self._errors.most_common())

    @property
    def retried(self) -> dict[str, int]:
        """How often each kind of error was followed by another attempt."""
        return dict(self._retried.most_common())

    @property
    def faults(self) -> dict[str, int]:
        """Why requests stayed without a reply, in the system's words."""
        return dict(self._faults.most_common())
