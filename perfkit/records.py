"""Which instants does a request's ledger hold, which stages lie between them, and how can a request end?

A request is a ledger of instants from one monotonic nanosecond clock, always in the order of
`INSTANTS`. A stage is the time between two neighbouring boundaries, so the stages tile the
request's life without a gap. The ways to a child process and back are stages of their own; where the
work stays in the server, their instants are absent and the neighbours adjoin; so is that of the load of a replica's
copy where all copies are on the device. Four instants are
hand-overs inside a stage: columns of the ledger, but no boundary.
"""

from __future__ import annotations

from enum import IntEnum

INSTANTS: tuple[str, ...] = (
    "scheduled",
    "sent",
    "accepted",
    "parsed",
    "preprocess_queued",
    "preprocess_started",
    "preprocess_reached",
    "preprocess_ended",
    "preprocess_returned",
    "model_queued",
    "batch_joined",
    "batch_sealed",
    "model_reached",
    "model_loaded",
    "collated",
    "h2d_started",
    "h2d_ended",
    "compute_started",
    "compute_ended",
    "d2h_started",
    "d2h_ended",
    "woken",
    "model_returned",
    "postprocess_queued",
    "postprocess_started",
    "postprocess_reached",
    "postprocess_ended",
    "serialised",
    "postprocess_returned",
    "replied",
    "received",
)
CLIENT_INSTANTS: tuple[str, ...] = ("scheduled", "sent", "received")
BATCH_INSTANTS: tuple[str, ...] = INSTANTS[INSTANTS.index("batch_sealed") : INSTANTS.index("model_returned") + 1]

STAGE_ENDS: dict[str, str] = {
    "send": "sent",
    "accept": "accepted",
    "parse": "parsed",
    "preprocess_wait": "preprocess_started",
    "to_preprocess": "preprocess_reached",
    "preprocess": "preprocess_ended",
    "from_preprocess": "preprocess_returned",
    "queue_wait": "batch_joined",
    "batch_wait": "batch_sealed",
    "to_model": "model_reached",
    "model_load": "model_loaded",
    "collate": "collated",
    "copy_wait": "h2d_started",
    "h2d": "h2d_ended",
    "compute_wait": "compute_started",
    "compute": "compute_ended",
    "d2h": "d2h_ended",
    "wake_lag": "woken",
    "from_model": "model_returned",
    "postprocess_wait": "postprocess_started",
    "to_postprocess": "postprocess_reached",
    "postprocess": "postprocess_ended",
    "serialize": "serialised",
    "from_postprocess": "postprocess_returned",
    "reply": "replied",
    "receive": "received",
}
"""Stage name -> the instant that ends it; it starts at the instant that ends the stage before."""

STAGES: tuple[str, ...] = tuple(STAGE_ENDS)


class EndState(IntEnum):
    """How a request ended. Stored as the lower-case name."""

    OPEN = 0
    OK = 1
    REJECTED = 2  # admission said no: queue full, draining, rate limit
    EXPIRED = 3  # its deadline passed before its next stage
    CANCELLED = 4  # the client left
    REFUSED = 5  # malformed, too large, or the model refuses the input
    FAILED = 6  # the service raised
    TIMED_OUT = 7  # the client gave up waiting for the reply
    CONNECT_FAILED = 8  # no connection within the connect time-out
    DISCONNECTED = 9  # the service closed the connection before a whole reply

    @property
    def label(self) -> str:
        """The name as tables and JSON carry it: `timed_out`."""
        return self.name.lower()
