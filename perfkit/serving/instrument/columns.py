"""Which cells does a row of the server's ledger have? One layout for requests, one for batches."""

from __future__ import annotations

from perfkit.records import BATCH_INSTANTS, CLIENT_INSTANTS, INSTANTS

REQUEST_INSTANTS: tuple[str, ...] = tuple(
    name for name in INSTANTS if name not in CLIENT_INSTANTS and name not in BATCH_INSTANTS
)
REQUEST_COLUMNS: tuple[str, ...] = (
    "request_id",
    "end_state",
    "status",
    "batch_id",
    "preprocess_thread",
    "postprocess_thread",
    "preprocess_cpu_ns",
    "postprocess_cpu_ns",
    "middleware_ns",
    *(f"{name}_ns" for name in REQUEST_INSTANTS),
)
BATCH_COLUMNS: tuple[str, ...] = (
    "batch_id",
    "model_thread",
    "size",
    "units",
    "padded_units",
    "cpu_ns",
    "clamped_ns",
    "worker_free_ns",
    "due_ns",
    "taken_ns",
    *(f"{name}_ns" for name in BATCH_INSTANTS),
)


def _column(names: tuple[str, ...], name: str) -> int:
    return 1 + names.index(name)  # column 0 is the ledger's own number


REQUEST_ID = _column(REQUEST_COLUMNS, "request_id")
END_STATE = _column(REQUEST_COLUMNS, "end_state")
STATUS = _column(REQUEST_COLUMNS, "status")
BATCH_ID = _column(REQUEST_COLUMNS, "batch_id")
PREPROCESS_THREAD = _column(REQUEST_COLUMNS, "preprocess_thread")
POSTPROCESS_THREAD = _column(REQUEST_COLUMNS, "postprocess_thread")
PREPROCESS_CPU = _column(REQUEST_COLUMNS, "preprocess_cpu_ns")
POSTPROCESS_CPU = _column(REQUEST_COLUMNS, "postprocess_cpu_ns")
MIDDLEWARE = _column(REQUEST_COLUMNS, "middleware_ns")
ACCEPTED = _column(REQUEST_COLUMNS, "accepted_ns")
PARSED = _column(REQUEST_COLUMNS, "parsed_ns")
PREPROCESS_QUEUED = _column(REQUEST_COLUMNS, "preprocess_queued_ns")
PREPROCESS_STARTED = _column(REQUEST_COLUMNS, "preprocess_started_ns")
PREPROCESS_REACHED = _column(REQUEST_COLUMNS, "preprocess_reached_ns")
PREPROCESS_ENDED = _column(REQUEST_COLUMNS, "preprocess_ended_ns")
PREPROCESS_RETURNED = _column(REQUEST_COLUMNS, "preprocess_returned_ns")
MODEL_QUEUED = _column(REQUEST_COLUMNS, "model_queued_ns")
BATCH_JOINED = _column(REQUEST_COLUMNS, "batch_joined_ns")
POSTPROCESS_QUEUED = _column(REQUEST_COLUMNS, "postprocess_queued_ns")
POSTPROCESS_STARTED = _column(REQUEST_COLUMNS, "postprocess_started_ns")
POSTPROCESS_REACHED = _column(REQUEST_COLUMNS, "postprocess_reached_ns")
POSTPROCESS_ENDED = _column(REQUEST_COLUMNS, "postprocess_ended_ns")
SERIALISED = _column(REQUEST_COLUMNS, "serialised_ns")
POSTPROCESS_RETURNED = _column(REQUEST_COLUMNS, "postprocess_returned_ns")
REPLIED = _column(REQUEST_COLUMNS, "replied_ns")

B_BATCH_ID = _column(BATCH_COLUMNS, "batch_id")
B_MODEL_THREAD = _column(BATCH_COLUMNS, "model_thread")
B_SIZE = _column(BATCH_COLUMNS, "size")
B_UNITS = _column(BATCH_COLUMNS, "units")
B_PADDED_UNITS = _column(BATCH_COLUMNS, "padded_units")
B_CPU = _column(BATCH_COLUMNS, "cpu_ns")
B_CLAMPED = _column(BATCH_COLUMNS, "clamped_ns")
B_WORKER_FREE = _column(BATCH_COLUMNS, "worker_free_ns")
B_DUE = _column(BATCH_COLUMNS, "due_ns")
B_TAKEN = _column(BATCH_COLUMNS, "taken_ns")
B_SEALED = _column(BATCH_COLUMNS, "batch_sealed_ns")
B_MODEL_REACHED = _column(BATCH_COLUMNS, "model_reached_ns")
B_MODEL_LOADED = _column(BATCH_COLUMNS, "model_loaded_ns")
B_COLLATED = _column(BATCH_COLUMNS, "collated_ns")
B_H2D_STARTED = _column(BATCH_COLUMNS, "h2d_started_ns")
B_WOKEN = _column(BATCH_COLUMNS, "woken_ns")
B_MODEL_RETURNED = _column(BATCH_COLUMNS, "model_returned_ns")
