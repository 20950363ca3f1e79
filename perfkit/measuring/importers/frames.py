"""What does an imported file look like as pandas tables, one row a level and one row a request?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from perfkit.measuring.analysis.latency import NO_QUANTILE
from perfkit.measuring.importers.imported import Imported, Level, percent_name
from perfkit.measuring.importers.requests import QUANTILES

if TYPE_CHECKING:
    from pandas import DataFrame

_FIGURES = (
    *("row", "loop", "concurrency", "offered_rps", "throughput_rps", "requests", "errors", "timeouts", "unsent"),
    *("duration_s", "mean_s", "min_s", "max_s", "good_mean_s", "error_mean_s", "grade"),
)


def levels_frame(imported: Imported) -> DataFrame:
    """One row a level; a percentile has a column, where it was computed from single requests its interval too."""
    import pandas

    return pandas.DataFrame([_row(level) for level in imported.levels])


def requests_frame(imported: Imported) -> DataFrame:
    """One row a request, in the order of their start; empty where the file has no single requests."""
    import pandas

    found = imported.requests
    if found is None:
        return pandas.DataFrame({"start_ns": [], "latency_ns": [], "is_error": [], "name": []})
    names = pandas.Categorical.from_codes(found.name.astype(np.int32), pandas.Index(found.names))
    columns = {"start_ns": found.start_ns, "latency_ns": found.latency_ns, "is_error": found.is_error, "name": names}
    return pandas.DataFrame(columns)


def _row(level: Level) -> dict[str, object]:
    row: dict[str, object] = {"name": level.name} | {name: getattr(level, name) for name in _FIGURES}
    for p in QUANTILES:  # in every file's table, so that several open as one
        found = level.quantiles.get(p, NO_QUANTILE)
        name = percent_name(p)
        row |= {f"{name}_s": level.percentile(p), f"{name}_low_s": found.low, f"{name}_high_s": found.high}
    return row | {f"{percent_name(p)}_s": value for p, value in level.percentiles_s.items()}
