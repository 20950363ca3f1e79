"""How far can a run be trusted? Four grades, each with its reasons."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from perfkit import units
from perfkit.measuring.analysis.floors import floor_count

if TYPE_CHECKING:
    from perfkit.measuring.analysis.latency import Quantile

Label = Literal["sound", "short", "unsteady", "void"]
PROFILED = "a profiler was attached; a profiled phase never counts as a measurement"
GREW = "the server compiled the model again under load; its figures measure the compiler too"
UNANSWERED = "no request was answered inside a measured window"
UNSEEN_WARMUP = "the rounds have too few requests to see where their warm-up ends"
MOVED = "settings were changed while the run went on; its figures belong to no single setting"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Grade:
    """*void*: the instrument failed. *unsteady*: no single state. *short*: too few requests. *sound*: none of these."""

    label: Label
    reasons: tuple[str, ...]


def grade(failures: Sequence[str], problems: Sequence[str], shortfalls: Sequence[str]) -> Grade:
    """The worst that applies, with all reasons, the worst first."""
    label: Label = "void" if failures else "unsteady" if problems else "short" if shortfalls else "sound"
    return Grade(label=label, reasons=(*failures, *problems, *shortfalls))


def shortfall_text(name: str, found: Quantile) -> str:
    """Why a quantile (p50, p99) has no value, and what it would take."""
    floor = floor_count(int(name[1:]) / 100)
    if found.needs_s is None:
        return f"{name.upper()} is not known: that many requests never got a reply"
    needs = f"needs about {units.format_duration(found.needs_s)} of measuring"
    if found.n_eff >= floor:
        return f"{name.upper()} {needs}: 300 relaxation times of the queue"
    return f"{name.upper()} {needs}: {found.n_eff:.0f} effective of {found.n} requests, {floor} are the floor"
