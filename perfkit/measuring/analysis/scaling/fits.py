"""What does a scan say about how the service scales? Every fit or its refusal, and the knee, in one record."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from perfkit.measuring.analysis.point import Point
from perfkit.measuring.analysis.scaling.batch_model import BatchModel, fit_batch_model
from perfkit.measuring.analysis.scaling.bounds import Bounds, find_bounds
from perfkit.measuring.analysis.scaling.curve import curve_of
from perfkit.measuring.analysis.scaling.knee import Estimate, estimate_knee, merged
from perfkit.measuring.analysis.scaling.refusal import Refusal
from perfkit.measuring.analysis.scaling.usl import UslFit, fit_usl
from perfkit.measuring.analysis.scaling.wording import scaling_sentences
from perfkit.measuring.analysis.usable import Document


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scaling:
    """How throughput follows the varied setting. `print` says it in sentences, `to_json` in figures."""

    simulated: bool
    usl: UslFit | Refusal
    bounds: Bounds | Refusal
    batch_model: BatchModel | Refusal
    device_model: BatchModel | Refusal
    knee: Mapping[str, Any] | None
    knee_estimates: tuple[Estimate, ...]

    def to_json(self) -> dict[str, Any]:
        """`knee`, `knee_estimates` and `fits` as `perfkit scan --json` prints them."""
        return {
            "knee": self.knee,
            "knee_estimates": [one.to_json() for one in self.knee_estimates],
            "fits": {
                "usl": self.usl.to_json(),
                "bounds": self.bounds.to_json(),
                "batch_model": self.batch_model.to_json(),
                "device_model": self.device_model.to_json(),
            },
        }

    def __str__(self) -> str:
        label = "Simulated. " if self.simulated else ""
        return label + "\n".join(scaling_sentences(self.to_json()))


def fit_scaling(points: Iterable[Point | Document], p99_s: float | None = None) -> Scaling:
    """Everything that the points of a scan allow; `p99_s` is the latency budget that one estimator of the knee needs.

    Never raises for what the points lack: each part is then a refusal that says why.
    """
    documents = [point.to_json() if isinstance(point, Point) else point for point in points]
    curve = curve_of(documents)
    usl, bounds = (curve, curve) if isinstance(curve, Refusal) else (fit_usl(curve), find_bounds(curve))
    estimates = () if isinstance(curve, Refusal) else estimate_knee(curve, p99_s)
    steady = [document for document in documents if document["grade"] != "void"]
    return Scaling(
        simulated=any(document.get("simulated") for document in documents),
        usl=usl,
        bounds=bounds,
        batch_model=fit_batch_model(steady, "occupied"),
        device_model=fit_batch_model(steady, "compute"),
        knee=None if isinstance(curve, Refusal) else merged(curve, estimates),
        knee_estimates=estimates,
    )
