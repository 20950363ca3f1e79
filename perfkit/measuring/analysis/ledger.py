"""Where did each request's time go? Its stages, which tile its life without a gap."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from perfkit.clock import NS_PER_S
from perfkit.measuring.analysis.blocks import Floats
from perfkit.measuring.analysis.instants import instant_matrix
from perfkit.records import BATCH_INSTANTS, CLIENT_INSTANTS, INSTANTS, STAGE_ENDS, STAGES

if TYPE_CHECKING:
    import pandas as pd

TOTAL = "total"
BOUNDARIES: tuple[str, ...] = ("scheduled", *STAGE_ENDS.values())
SERVER_INSTANTS: tuple[str, ...] = tuple(name for name in INSTANTS if name not in CLIENT_INSTANTS)


def stage_table(requests: pd.DataFrame, batches: pd.DataFrame | None = None) -> pd.DataFrame:
    """Seconds that each request spent in each stage, and `total` from its schedule to its reply.

    An absent boundary is NaN and the next present stage spans it as well, so the stages of a row always
    add up to its life. A row without the server's half has `send` and `total` only: what lies between
    send and reply is not known to be the network's. Batch instants missing in a row are taken from
    `batches`.

    Inline preprocess waits for the model worker before it starts. That wait is shown where its cure lies:
    `queue_wait` while all workers were busy, `batch_wait` while a free one kept its window open.
    """
    import pandas as pd

    rows = requests if batches is None else with_batch_instants(requests, batches)
    base_ns = _base_ns(rows)
    at = instant_matrix(rows, BOUNDARIES, base_ns)
    before = carried_forward(at)[:, :-1]
    spans = (at[:, 1:] - before) / NS_PER_S
    _split_inline_wait(rows, at, spans, base_ns)
    foreign = ~has_server_half(rows)
    spans[foreign, STAGES.index("receive")] = np.nan
    table = pd.DataFrame(spans, columns=list(STAGES), index=requests.index)
    table[TOTAL] = (at[:, -1] - at[:, 0]) / NS_PER_S
    return table


def _split_inline_wait(rows: pd.DataFrame, at: Floats, spans: Floats, base_ns: int) -> None:
    """Move the wait before inline preprocess into the two stages that it consists of; changes `spans` in place."""
    free, due, taken = instant_matrix(rows, ("worker_free", "due", "taken"), base_ns).T
    parsed, started = at[:, BOUNDARIES.index("parsed")], at[:, BOUNDARIES.index("preprocess_started")]
    is_inline = taken <= started
    picked_up = np.fmin(np.fmax(free, parsed), started)
    busy = np.where(is_inline, picked_up - parsed, 0.0)
    window = np.where(is_inline, np.fmax(np.fmin(due, started) - picked_up, 0.0), 0.0)
    for stage, moved in (("queue_wait", busy), ("batch_wait", window)):
        moved_s = np.nan_to_num(moved) / NS_PER_S
        spans[:, STAGES.index("preprocess_wait")] -= moved_s
        spans[:, STAGES.index(stage)] += moved_s


def _base_ns(rows: pd.DataFrame) -> int:
    """Any recorded instant: differences do not depend on it, but float64 is exact only near it."""
    for name in ("scheduled_ns", "accepted_ns"):
        if name in rows and rows[name].notna().any():
            return int(rows[name].dropna().iloc[0])
    return 0


def carried_forward(at: Floats) -> Floats:
    """Each cell's latest present instant at or before it in the row."""
    columns = np.where(np.isnan(at), 0, np.arange(at.shape[1]))
    latest = np.maximum.accumulate(columns, axis=1)
    return np.asarray(np.take_along_axis(at, latest, axis=1), dtype=np.float64)


def has_server_half(rows: pd.DataFrame) -> Any:
    """For each row, whether the server's ledger knows it."""
    columns = [f"{name}_ns" for name in SERVER_INSTANTS if f"{name}_ns" in rows]
    return rows[columns].notna().any(axis=1).to_numpy(dtype=bool)


def with_batch_instants(requests: pd.DataFrame, batches: pd.DataFrame) -> pd.DataFrame:
    """The requests with absent batch instants filled in from their batch, which (round, batch_id) names."""
    if not len(batches):
        return requests
    key = ["round", "batch_id"]
    known = requests[key].merge(batches.drop_duplicates(key), on=key, how="left").set_axis(requests.index)
    names = [f"{instant}_ns" for instant in BATCH_INSTANTS if f"{instant}_ns" in requests and f"{instant}_ns" in known]
    return requests.assign(**{name: requests[name].fillna(known[name]) for name in names})


def stage_means(table: pd.DataFrame) -> dict[str, float | None]:
    """Mean seconds a request spends in each stage; None for a stage that no request passed through.

    The sum of a stage is divided by all rows, so that the means add up to the mean latency.
    """
    return {stage: _mean_over_all(table[stage].to_numpy(dtype=np.float64)) for stage in STAGES}


def _mean_over_all(spans: Floats) -> float | None:
    return None if len(spans) == 0 or bool(np.isnan(spans).all()) else float(np.nansum(spans)) / len(spans)


def padding_ratio(batches: pd.DataFrame) -> float | None:
    """Share of the computed units (tokens, pixels) that was padding; None when batches count none."""
    computed = float(batches["padded_units"].sum()) if len(batches) else 0.0
    return 1 - float(batches["units"].sum()) / computed if computed > 0 else None


def fill_ratio(batches: pd.DataFrame, max_batch: int | None) -> float | None:
    """Mean batch size relative to the most allowed; None without batches or without the setting."""
    return None if max_batch is None or not len(batches) else float(batches["size"].mean()) / max_batch
