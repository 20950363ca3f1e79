"""Is every request accounted for, at the client, in the server's counters and in its ledger? Exact counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from perfkit.measuring.analysis.ledger import has_server_half
from perfkit.measuring.analysis.validity.check import Check, at_most, not_judged
from perfkit.measuring.analysis.warmup import OK
from perfkit.records import EndState

if TYPE_CHECKING:
    from perfkit.measuring.analysis.rundata import RunData

ORIGIN = "by definition: what came in has ended or is in flight, exactly"
_ENDED = tuple(state.label for state in EndState if state is not EndState.OPEN)


def check_client_counts(run: RunData) -> Check:
    """Every request that the generator scheduled is one row with one end."""
    name = "client conservation"
    rows = run.requests[run.requests["scheduled_ns"].notna()]
    if not run.generator_reports:
        return not_judged(name, 0, ORIGIN, "no report of the load generator")
    scheduled = sum(int(report["scheduled"]) for report in run.generator_reports)
    repeated = int(rows.duplicated(["round", "request_id"]).sum())
    unended = int((rows["end_state"] == EndState.OPEN.label).sum())
    wrong = abs(scheduled - len(rows)) + repeated + unended
    text = f"{scheduled} requests scheduled, {len(rows)} rows, {repeated} of them repeated, {unended} without an end"
    return at_most(name, wrong, 0, ORIGIN, text)


def check_server_counts(run: RunData) -> Check:
    """Accepted = ended, in whichever way, + still in flight."""
    name = "server conservation"
    if not run.counters:
        return not_judged(name, 0, ORIGIN, "the service gives no counters")
    wrong = sum(abs(_lost(run, entry)) for entry in run.counters)
    return at_most(name, wrong, 0, ORIGIN, f"the server's counters lost or invented {wrong} requests")


def _lost(run: RunData, entry: Mapping[str, Any]) -> int:
    before, after = entry["before"], entry["after"]
    readings = [gauge for gauge in run.gauges if gauge["round"] == entry["round"]]
    change = int(readings[-1]["in_flight"]) - int(readings[0]["in_flight"]) if readings else 0
    return _growth(before, after, "accepted") - sum(_growth(before, after, state) for state in _ENDED) - change


def _growth(before: Mapping[str, Any], after: Mapping[str, Any], name: str) -> int:
    return int(after.get(name, 0)) - int(before.get(name, 0))


def check_replies_agree(run: RunData) -> Check:
    """The server gave at least the good replies that the client got."""
    name = "replies agree"
    if not run.counters:
        return not_judged(name, 0, ORIGIN, "the service gives no counters")
    given = sum(_growth(entry["before"], entry["after"], OK) for entry in run.counters)
    rounds = [entry["round"] for entry in run.counters]
    got = int(
        ((run.requests["end_state"] == OK) & run.requests["sent_ns"].notna() & run.requests["round"].isin(rounds)).sum()
    )
    return at_most(
        name, max(0, got - given), 0, ORIGIN, f"the client counts {got} good replies, the server only {given}"
    )


def check_ledger_complete(run: RunData) -> Check:
    """No row of the ledger was overwritten unread, and every good reply has one."""
    name = "ledger complete"
    halves = has_server_half(run.requests)
    if not len(run.requests) or not halves.any():
        return not_judged(name, 0, ORIGIN, "no server ledger")
    dropped = sum(_growth(entry["before"], entry["after"], "ledger_dropped") for entry in run.counters)
    unwritten = sum(_unwritten(entry) for entry in run.counters)
    without = int(((run.requests["end_state"] == OK).to_numpy(dtype=bool) & ~halves).sum())
    text = f"{dropped} ledger rows overwritten unread, {unwritten} ended requests not written"
    text += f", {without} good replies without a row"
    return at_most(name, dropped + unwritten + without, 0, ORIGIN, text)


def _unwritten(entry: Mapping[str, Any]) -> int:
    before, after = entry["before"], entry["after"]
    ended = sum(_growth(before, after, state) for state in _ENDED)
    kept = _growth(before, after, "ledger_rows") + _growth(before, after, "ledger_dropped")
    return max(0, ended - kept)
