"""How do the client's samples and the server's ledger become one table of requests?

Both sides know a request by the id that the client sent along. A request that only one side saw is
kept: the other side's columns are absent. The id counts attempts too: a request that was sent again is
one row, its last attempt's, and the server's rows of the attempts before stand alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from perfkit.measuring.archive.format import BATCHES, REQUESTS
from perfkit.measuring.load.attempts import attempt_of, request_of
from perfkit.measuring.load.outcomes import error_kind
from perfkit.records import BATCH_INSTANTS, EndState

if TYPE_CHECKING:
    import pandas as pd

_RENAMED = {"bytes_sent": "bytes_out", "bytes_received": "bytes_in"}
_NEVER_ABSENT = ("request_id", "round", "payload", "status", "batch_id", "size", "units", "padded_units")
_ZERO_COUNTS = ("preprocess_cpu_ns", "postprocess_cpu_ns", "clamped_ns", "cpu_ns", "bytes_in", "bytes_out")
_FROM_BATCH = (
    "model_thread",
    "clamped_ns",
    "worker_free_ns",
    "due_ns",
    "taken_ns",
    *(f"{instant}_ns" for instant in BATCH_INSTANTS),
)


def batch_table(ledger: Any | None, round_index: int) -> pd.DataFrame:
    """Batches of one round, from the server's Arrow table; empty when there is none."""
    import pandas as pd

    if ledger is None:
        return pd.DataFrame({name: pd.array([], dtype="Int64") for name in BATCHES.columns})
    table = _nullable(ledger.to_pandas().drop(columns="number"))
    table["round"] = pd.array([round_index] * len(table), dtype="Int64")
    return table


def request_table(
    samples: Mapping[str, Any], ledger: Any | None, batches: pd.DataFrame, round_index: int
) -> pd.DataFrame:
    """Requests of one round: what the client sent, joined with what the server stamped."""
    import pandas as pd

    client = pd.DataFrame(dict(samples)).rename(columns=_RENAMED)
    outcome = client.pop("outcome")
    errors = [
        "" if code == EndState.OK else error_kind(code, status)
        for code, status in zip(outcome, client["status"], strict=True)
    ]
    # The type is named, because a round without a request has no text to tell it by.
    client["end_state"] = pd.Series([EndState(code).label for code in outcome], client.index, "str")
    client["error"] = pd.Series(errors, client.index, "str")
    client = _nullable(client)
    table = client if ledger is None else _with_server(client, ledger, batches)
    table["round"] = pd.array([round_index] * len(table), dtype="Int64")
    return _in_order(_with_attempts(table))


def _with_server(client: pd.DataFrame, ledger: Any, batches: pd.DataFrame) -> pd.DataFrame:
    server = ledger.to_pandas().drop(columns=["number", "status"])
    server["server_end_state"] = [EndState(code).label for code in server.pop("end_state")]
    table = client.merge(_nullable(server), on="request_id", how="outer", sort=False)
    table["end_state"] = table["end_state"].fillna(table["server_end_state"])
    return table.merge(batches[["batch_id", *_FROM_BATCH]], on="batch_id", how="left", sort=False)


def _with_attempts(table: pd.DataFrame) -> pd.DataFrame:
    """The request's own ids, and a column `attempts` when any request was sent again."""
    attempts = attempt_of(table["request_id"])
    if not (attempts > 1).any():
        return table
    return table.assign(attempts=attempts, request_id=request_of(table["request_id"]))


def _nullable(table: pd.DataFrame) -> pd.DataFrame:
    """Integer columns as Int64; 0 becomes null where 0 means absent."""
    for name in table.columns:
        if table[name].dtype.kind != "i":
            continue
        column = table[name].astype("Int64")
        keeps_zero = name in _NEVER_ABSENT or name in _ZERO_COUNTS
        table[name] = column if keeps_zero else column.mask(column == 0)
    if "batch_id" in table:
        table["batch_id"] = table["batch_id"].mask(table["batch_id"] == 0)
    return table


def _in_order(table: pd.DataFrame) -> pd.DataFrame:
    """The format's columns first, in its order; absent ones are null."""
    import pandas as pd

    for name, kind in REQUESTS.columns.items():
        if name not in table:
            table[name] = pd.Series("" if kind == "text" else pd.NA, table.index, "str" if kind == "text" else "Int64")
    further = [name for name in table.columns if name not in REQUESTS.columns]
    return table[[*REQUESTS.columns, *further]]
