"""Which checks are there, and in which order do they run? By value, so that a short stay on a GPU gives the most."""

from __future__ import annotations

from perfkit.measuring.gpucheck.check import Check
from perfkit.measuring.gpucheck.checks import (
    batch_curve,
    convoy,
    copies,
    decoding,
    event_clock,
    first_request,
    graphs,
    meters,
    ordering,
    out_of_memory,
    priority,
    replicas,
    stage_sum,
    stream_safety,
    thread_scan,
    waiting,
)

CHECKS: tuple[Check, ...] = tuple(
    module.CHECK
    for module in (
        first_request,
        event_clock,
        stage_sum,
        stream_safety,
        copies,
        batch_curve,
        graphs,
        thread_scan,
        priority,
        meters,
        waiting,
        out_of_memory,
        replicas,
        decoding,
        convoy,
        ordering,
    )
)
NUMBERS = tuple(sorted({check.number for check in CHECKS}))
