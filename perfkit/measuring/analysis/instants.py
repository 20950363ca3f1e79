"""How do nullable integer instants become numbers that arithmetic and NaN can handle?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from perfkit.measuring.analysis.blocks import Floats

if TYPE_CHECKING:
    import pandas as pd


def relative_ns(table: pd.DataFrame, name: str, base_ns: int) -> Floats:
    """One instant of each row in nanoseconds after `base_ns`; NaN where it is absent.

    The base is subtracted while the numbers are integers, so that no nanosecond is rounded away.
    """
    if f"{name}_ns" not in table.columns:
        return np.full(len(table), np.nan)
    column: Any = table[f"{name}_ns"]
    if not column.hasnans:  # the usual case, without a copy of each step
        found = np.empty(len(column), dtype=np.float64)
        np.subtract(column.to_numpy(dtype="int64"), base_ns, out=found, dtype=np.int64, casting="unsafe")
        return found
    return np.asarray((column - base_ns).to_numpy(dtype="float64", na_value=np.nan), dtype=np.float64)


def instant_matrix(table: pd.DataFrame, names: Sequence[str], base_ns: int) -> Floats:
    """One row a request, one column an instant."""
    if not len(table) or not names:
        return np.full((len(table), len(names)), np.nan)
    return np.column_stack([relative_ns(table, name, base_ns) for name in names])


def schedule_order(rows: pd.DataFrame, scheduled: Floats) -> NDArray[np.intp]:
    """Places of the rows that a client scheduled, in the order of their schedule; within an instant, of their ids.

    `scheduled` is each row's instant; NaN where no client scheduled it.
    """
    if bool(np.all(scheduled[1:] > scheduled[:-1])) and not np.isnan(scheduled[:1]).any():
        return np.arange(len(scheduled))  # in order already, as most tables are
    ids = rows["request_id"].to_numpy(dtype="float64", na_value=np.nan)
    order = np.lexsort((ids, scheduled))
    return order[: int(np.sum(~np.isnan(scheduled)))]


def overlap_ns(starts: Floats, ends: Floats, window: tuple[float, float]) -> Floats:
    """How much of each span lies inside a window; NaN spans count as 0."""
    inside = np.minimum(ends, window[1]) - np.maximum(starts, window[0])
    return np.where(np.isnan(inside), 0.0, np.maximum(inside, 0.0))
