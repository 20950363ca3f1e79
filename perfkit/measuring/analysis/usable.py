"""Which points may decide something? Read from points or from their JSON, as scans and archives hold them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from perfkit.measuring.analysis.blocks import Interval
from perfkit.measuring.analysis.point import Point

Document = Mapping[str, Any]
STEADY = ("sound", "short")
MOST_ERRORS_RATIO = 0.01  # judgement: a setting that fails more requests than P99 leaves out is no answer


def usable_points(points: Iterable[Point | Document]) -> list[Document]:
    """The points in a steady state that answer nearly all requests, as JSON documents."""
    documents = (point.to_json() if isinstance(point, Point) else point for point in points)
    return [document for document in documents if is_usable(document)]


def is_usable(document: Document) -> bool:
    """Whether a point may be chosen: neither void nor unsteady, with a throughput and few errors."""
    few_errors = (document.get("error_ratio") or 0.0) <= MOST_ERRORS_RATIO
    return document["grade"] in STEADY and bool(document["throughput_rps"]["value"]) and few_errors


def interval_of(figure: Mapping[str, float | None]) -> Interval:
    """Value and ends of a JSON figure."""
    return Interval(value=figure["value"], low=figure["low"], high=figure["high"])


def rate_of(document: Document) -> float:
    """Throughput of a usable point."""
    return float(document["throughput_rps"]["value"])
