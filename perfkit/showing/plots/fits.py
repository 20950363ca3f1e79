"""What do the fits say of a scan's throughput? Thin lines over its curve: USL with its band, bounds, full batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from perfkit.showing.plots.look import GREY, PURPLE, faded, plain
from perfkit.showing.plots.points import place_of
from perfkit.units import format_interval, format_rate

_STEPS = 25
_PAST_CROSSING = 1.12  # the first bound is drawn a little beyond the second, so that one sees them cross


@dataclass(frozen=True, slots=True, kw_only=True)
class FitLine:
    """One line over the throughput; `low` and `high` are its band, `texts` what it says where the pointer is."""

    label: str
    at: tuple[float, ...]
    rps: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    texts: tuple[str, ...] = ()
    color: str = GREY
    dash: str = "dash"
    label_at: str = "right"  # the end of the line at which its label stands
    label_below: bool = False


def fit_lines(fits: Mapping[str, Any] | None, varied: str, settings: Sequence[Any]) -> list[FitLine]:
    """The lines that the fits of one curve allow, over the values of the setting; refused fits have none."""
    values = sorted(value for value in set(settings) if isinstance(value, int | float))
    if not fits or len(values) < 2:
        return []
    lines: list[FitLine] = []
    if not fits["bounds"]["refusal"]:
        lines += _bounds(fits["bounds"], values)
    if not fits["usl"]["refusal"]:
        lines.append(_usl(fits["usl"], values))
    if not fits["batch_model"]["refusal"] and varied.rpartition(".")[2] == "max_size":
        lines += _full_batches(fits["batch_model"], values)
    return lines


def _usl(usl: Mapping[str, Any], values: Sequence[float]) -> FitLine:
    rows = [row for row in usl["curve"] if values[0] <= row["users"] <= values[-1]]
    return FitLine(
        label="USL",
        at=tuple(row["users"] for row in rows),
        rps=tuple(row["value"] for row in rows),
        low=tuple(row["low"] for row in rows),
        high=tuple(row["high"] for row in rows),
        texts=tuple(
            f"USL at {row['users']:.3g}: {format_rate(row['value'])} "
            f"({format_interval(format_rate(row['low']), format_rate(row['high']))})"
            for row in rows
        ),
        color=PURPLE,
        dash="solid",
        label_below=True,  # above the end of a falling curve is the curve
    )


def _bounds(bounds: Mapping[str, Any], values: Sequence[float]) -> list[FitLine]:
    alone, ceiling = bounds["alone_rps"]["value"], bounds["ceiling_rps"]["value"]
    steps = np.geomspace(values[0], min(values[-1], _PAST_CROSSING * ceiling / alone), _STEPS)
    return [
        FitLine(
            label=f"{format_rate(alone)} a user",
            at=tuple(map(float, steps)),
            rps=tuple(map(float, steps * alone)),
            dash="dot",
        ),
        FitLine(
            label=f"at most {format_rate(ceiling)}",
            at=(float(values[0]), float(values[-1])),
            rps=(ceiling, ceiling),
            dash="dot",
            label_at="left",
        ),
    ]


def _full_batches(model: Mapping[str, Any], values: Sequence[float]) -> list[FitLine]:
    """X_max(B) of all workers, as far as the model may speak."""
    within = [value for value in values if value <= model["reach"]]
    if not model["workers"] or len(within) < 2:
        return []
    steps = np.geomspace(within[0], within[-1], _STEPS)
    fixed, slope = model["fixed_s"]["value"], model["per_request_s"]["value"]
    rates = model["workers"] * steps / (fixed + slope * steps)
    texts = tuple(f"always full, {size:.3g}: {format_rate(rate)}" for size, rate in zip(steps, rates, strict=True))
    return [
        FitLine(
            label="always full batches",
            at=tuple(map(float, steps)),
            rps=tuple(map(float, rates)),
            texts=texts,
            color=PURPLE,
            dash="dot",
        )
    ]


def add_fits(figure: go.Figure, lines: Sequence[FitLine], known: Mapping[float, float]) -> None:
    """Draw the lines into the upper panel; `known` gives the place of each measured setting on the axis."""
    for line in lines:
        places = [place_of(value, known) for value in line.at]
        if line.low:
            _add_band(figure, line, places)
        figure.add_scatter(
            x=places,
            y=list(line.rps),
            mode="lines",
            line={"color": line.color, "width": 1.4, "dash": line.dash},
            name=plain(line.label),
            hoverinfo="text" if line.texts else "skip",
            hovertext=[plain(text) for text in line.texts] or None,
            showlegend=False,
            row=1,
            col=1,
        )
        end = -1 if line.label_at == "right" else 0
        figure.add_annotation(
            x=places[end],
            y=line.rps[end],
            text=plain(line.label),
            showarrow=False,
            xanchor=line.label_at,
            yanchor="top" if line.label_below else "bottom",
            yshift=-8 if line.label_below else 0,
            font={"size": 11},  # in the page's own ink: small letters in a pale colour are hard to read
            row=1,
            col=1,
        )


def _add_band(figure: go.Figure, line: FitLine, places: Sequence[float]) -> None:
    figure.add_scatter(
        x=[*places, *reversed(places)],
        y=[*line.high, *reversed(line.low)],
        mode="lines",
        fill="toself",
        fillcolor=faded(line.color),
        line={"width": 0},
        hoverinfo="skip",
        showlegend=False,
        row=1,
        col=1,
    )
