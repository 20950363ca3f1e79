"""What limits the service, in sentences? From the figures of the fits, as an archive holds them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from perfkit import units

Json = Mapping[str, Any]
_LEAST_SHOWN = 0.001  # smaller residuals have no meaning


def scaling_sentences(scaling: Json) -> list[str]:
    """What the fits say and then what they do not; `scaling` holds `fits`, `knee` and `knee_estimates`."""
    return [*scaling_answers(scaling), *scaling_silences(scaling)]


def scaling_answers(scaling: Json) -> list[str]:
    """A sentence for each fit that could be made."""
    said = (("usl", _limit), ("bounds", _bounds), ("batch_model", lambda _: _batches(scaling["fits"])))
    return [say(scaling["fits"][name]) for name, say in said if not scaling["fits"][name]["refusal"]]


def scaling_silences(scaling: Json) -> list[str]:
    """Why each other fit was refused, and which estimators of the knee say nothing."""
    fits = scaling["fits"]
    usl, bounds = fits["usl"]["refusal"], fits["bounds"]["refusal"]
    curve = [f"What limits it: no USL fit: {usl}." if usl else "", f"Bounds: none: {bounds}." if bounds else ""]
    if usl and usl == bounds:
        curve = [f"No USL fit and no bounds: {usl}."]
    batches = [_no_batches(fits)] if fits["batch_model"]["refusal"] else []
    return [*filter(None, curve), *batches, *_estimates(scaling)]


def _limit(usl: Json) -> str:
    shares, most = usl["shares_at_most"], usl["values"][-1]
    spent = (
        f"at {most:g} users a turn is {_percent(shares['work'])} own work, {_percent(shares['contention'])} contention "
        f"and {_percent(shares['coherence'])} coherence"
    )
    figures = f"contention s = {_figure(usl['contention'])}, coherence k = {_figure(usl['coherence'])}"
    return f"What limits it: {figures}; {spent}. {_peak(usl)}"


def _peak(usl: Json) -> str:
    peak = usl["peak"]
    ratio = usl["worst_residual_ratio"]
    worst = _percent(ratio) if ratio >= _LEAST_SHOWN else f"below {_percent(_LEAST_SHOWN)}"
    fit = f"(USL over {len(usl['values'])} numbers of users, worst residual {worst})"
    if peak["value"] is not None:
        end = units.format_number(peak["high"]) if peak["high"] is not None else "beyond the fit's reach"
        interval = f"{units.format_number(peak['low'])} to {end}"
        return f"Peak at {units.format_number(peak['value'])} users ({interval}) {fit}."
    return f"No peak up to {usl['curve'][-1]['users']:g} users {fit}."


def _bounds(bounds: Json) -> str:
    alone, ceiling = (_rate(bounds[name]) for name in ("alone_rps", "ceiling_rps"))
    text = (
        f"Bounds: {alone} for each user, {ceiling} in all ({bounds['ceiling_of']}); "
        f"they cross at {_figure(bounds['crossing'])} users."
    )
    above = ", ".join(f"{value:g}" for value in bounds["above"])
    return (
        f"{text} Throughput lies above them at {above} users: an instrument or the machine changed." if above else text
    )


def _no_batches(fits: Json) -> str:
    computes = _computes(fits["device_model"])
    return f"Batch model: none: {fits['batch_model']['refusal']}{f'; {computes}' if computes else ''}."


def _computes(device: Json) -> str:
    return "" if device["refusal"] else f"the device computes {_line(device)}"


def _batches(fits: Json) -> str:
    model, computes = fits["batch_model"], _computes(fits["device_model"])
    size, crew = model["sizes"][-1], model["workers"] or 1
    most = crew * size / (model["fixed_s"]["value"] + model["per_request_s"]["value"] * size)
    return (
        f"Batch model: a call keeps a worker {_line(model)}{f', of which {computes}' if computes else ''} (batches of "
        f"{model['sizes'][0]} to {size}); {crew} worker{'s' if crew > 1 else ''} with full batches can do "
        f"{units.format_rate(most)}."
    )


def _line(model: Json) -> str:
    return f"{_duration(model['fixed_s'])} and {_duration(model['per_request_s'])} a request"


def _estimates(scaling: Json) -> Iterator[str]:
    """Why there is no knee, and which estimators are silent, for reasons that were not told before."""
    estimates, fits = scaling.get("knee_estimates") or (), scaling["fits"]
    told = {fits["usl"]["refusal"], fits["bounds"]["refusal"]}
    if scaling.get("knee") is None and estimates:
        seen = ", ".join(one["method"] for one in estimates if not one["refusal"])
        yield f"Knee: none: {seen} alone is no knee, it moves with the range." if seen else "Knee: none."
    silent = [one for one in estimates if one["refusal"] and one["refusal"] not in told]
    if silent:
        reasons = "; ".join(f"{one['estimator']}: {one['refusal']}" for one in silent)
        yield f"Estimators of the knee that say nothing: {reasons}."


def _percent(ratio: float) -> str:
    return units.format_percent(ratio)


def _figure(figure: Json) -> str:
    return _with_ends(figure, units.format_number)


def _rate(figure: Json) -> str:
    return _with_ends(figure, units.format_rate)


def _duration(figure: Json) -> str:
    return _with_ends(figure, units.format_duration)


def _with_ends(figure: Json, text: Any) -> str:
    """A value with its interval where it has one."""
    if figure["low"] is None or figure["high"] is None:
        return str(text(figure["value"]))
    return f"{text(figure['value'])} ({units.format_interval(text(figure['low']), text(figure['high']))})"
