"""How is the repeat-payload audit told? `perfkit load --audit-repeats`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit.units import format_bytes, format_percent

if TYPE_CHECKING:
    from perfkit.measuring.scanning.repeats import RepeatAudit

_CODES = {"repeats are faster": 1, "repeats are not faster": 0, "inconclusive": 5, "void": 3}


def tell_repeats(audit: RepeatAudit, as_json: bool) -> int:
    """Print the audit; exit 1 when repeats are faster, 5 when it is inconclusive, 3 when it is void."""
    from perfkit.showing.cli import console

    document = audit.to_json()
    if as_json:
        console.print_json({"schema": 1, **document})
        return _CODES[document["verdict"]]
    shares = {arm: format_percent(ratio) for arm, ratio in document["repeated_ratio"].items()}
    label = " · simulated" if audit.simulated else ""
    console.say(f"repeat-payload audit{label}: {_verdict(audit)}", style="bold")
    console.say(
        f"payloads that were sent before: {shares['different']} of {audit.requests['different']:,} requests with "
        f"different ones, {shares['same']} of {audit.requests['same']:,} with one of {format_bytes(audit.same_bytes)}"
    )
    console.say(
        f"a cache that holds all {audit.covers_entries} payloads answers both alike and would not show; "
        f"limit: {document['origin']}"
    )
    return _CODES[document["verdict"]]


def _verdict(audit: RepeatAudit) -> str:
    found = audit.found
    if found is None:
        return f"void: {audit.reason}"
    figures = (
        f"{found.ratio:.3f} times the rate, 95 % interval {found.low:.3f} to {found.high:.3f}, {found.pairs} pairs"
    )
    return f"{found.verdict}: {figures}"
