"""14: continuous against static batching, and speculative decoding. Perfkit has no decoder yet."""

from __future__ import annotations

from collections.abc import Sequence

from perfkit.measuring.gpucheck.bench import Bench
from perfkit.measuring.gpucheck.check import Check, Effort
from perfkit.measuring.gpucheck.line import MUST, Claim, Line

TOKENS = Claim("14.tokens", MUST, "a request's tokens are those of its decoding alone")


def measure(bench: Bench, effort: Effort) -> None:
    """There is nothing to measure."""


def judge(found: None) -> Sequence[Line]:
    """Left out on purpose."""
    return [TOKENS.skipped("not built", is_excused=True)]


CHECK = Check(number=14, name="decoding", cap_s=1.0, claims=(TOKENS,), measure=measure, judge=judge)
