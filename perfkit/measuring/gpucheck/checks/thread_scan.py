"""8: what do more threads gain, with operators launched one by one and with graphs, and did the simulator know?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from perfkit.measuring.gpucheck.bench import EAGER, GRAPH, Bench
from perfkit.measuring.gpucheck.check import Check, Effort
from perfkit.measuring.gpucheck.closed_loop import Loop, run_loop
from perfkit.measuring.gpucheck.line import MUST, VERDICT, Claim, Line
from perfkit.measuring.gpucheck.prediction import predict_rps
from perfkit.units import format_percent

LITTLE = Claim("8.little", MUST, "threads = throughput · latency in every row")
SCALING = Claim("8.scaling", VERDICT, "eager stays flat behind Python's lock, graphs scale")
PREDICTION = Claim("8.prediction", VERDICT, "the simulator predicts the rows from the one of 1 thread")
ALLOWED_LITTLE = 0.05
FLAT_RATIO = 1.3
SCALES_RATIO = 2.0
EXPECTED_ERROR_RATIO = 0.15
THREADS = (1, 2, 4, 8, 16)
_ROW_S = 1.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One level at one number of threads; the prediction is None in the row that it starts from."""

    level: str
    threads: int
    throughput_rps: float
    mean_s: float
    little_ratio: float
    predicted_rps: float | None

    @property
    def error_ratio(self) -> float:
        """How far the prediction is off; 0 without one."""
        return 0.0 if self.predicted_rps is None else abs(self.predicted_rps / self.throughput_rps - 1.0)


def measure(bench: Bench, effort: Effort) -> list[Row]:
    """Both levels, from one thread up."""
    loops = {
        level: [run_loop(bench, level, threads, effort.seconds(_ROW_S)) for threads in THREADS]
        for level in (EAGER, GRAPH)
    }
    device_s = loops[GRAPH][0].compute_s  # the same kernels without gaps between them
    return [_row(level, one, solo=runs[0], device_s=device_s) for level, runs in loops.items() for one in runs]


def _row(level: str, one: Loop, solo: Loop, device_s: float) -> Row:
    return Row(
        level=level,
        threads=one.threads,
        throughput_rps=one.throughput_rps,
        mean_s=one.mean_s,
        little_ratio=one.little_ratio,
        predicted_rps=None if one is solo else predict_rps(one.threads, solo.launch_s, device_s, solo.mean_s),
    )


def judge(found: list[Row]) -> list[Line]:
    """Little's law within 5 %; scaling and prediction are verdicts."""
    worst = max(found, key=lambda row: abs(row.little_ratio - 1.0))
    return [
        LITTLE.judged(
            abs(worst.little_ratio - 1.0) <= ALLOWED_LITTLE,
            {"rows": [_plain(row) for row in found]},
            f"the worst row ({worst.level}, {worst.threads} threads) has {worst.little_ratio:.3f} of its threads",
        ),
        _scaling(found),
        _prediction(found),
    ]


def _scaling(found: list[Row]) -> Line:
    gains = {level: _gain([row for row in found if row.level == level]) for level in (EAGER, GRAPH)}
    flat, scales = gains[EAGER] <= FLAT_RATIO, gains[GRAPH] >= SCALES_RATIO
    return SCALING.recorded(
        gains,
        f"eager gains {gains[EAGER]:.2f} times ({'flat' if flat else 'not flat'}), "
        f"graphs {gains[GRAPH]:.2f} times ({'they scale' if scales else 'they do not scale'})",
    )


def _prediction(found: list[Row]) -> Line:
    worst = max(found, key=lambda row: row.error_ratio)
    is_close = worst.error_ratio <= EXPECTED_ERROR_RATIO
    return PREDICTION.recorded(
        {"worst_error_ratio": worst.error_ratio},
        f"the worst prediction ({worst.level}, {worst.threads} threads) is {format_percent(worst.error_ratio)} off, "
        f"{'within' if is_close else 'beyond'} the 15 % expected",
    )


def _gain(rows: list[Row]) -> float:
    return max(row.throughput_rps for row in rows) / rows[0].throughput_rps


def _plain(row: Row) -> Mapping[str, object]:
    return {
        "level": row.level,
        "threads": row.threads,
        "throughput_rps": row.throughput_rps,
        "mean_s": row.mean_s,
        "little_ratio": row.little_ratio,
        "predicted_rps": row.predicted_rps,
    }


CHECK = Check(
    number=8,
    name="thread scan",
    cap_s=40.0,
    claims=(LITTLE, SCALING, PREDICTION),
    measure=measure,
    judge=judge,
)
