"""How do a run's requests reach a tracing system? As OpenTelemetry spans, OTLP over HTTP in its JSON form.

A trace a request: its life is the root span, its stages the children, and a link leads to the span of the
batch that it went through. Ids are derived from the run, so that sending twice makes no second trace. Layout:
OTLP specification 1.x, `ExportTraceServiceRequest`; ids in hexadecimal, nanoseconds as texts.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from perfkit import __version__
from perfkit.clock import NS_PER_S
from perfkit.errors import ConfigError, TargetFailed
from perfkit.measuring.archive.folder import StoredRun
from perfkit.measuring.exporting import spans
from perfkit.records import EndState

_PATH = "/v1/traces"  # of a receiver that is named by its address only
_TRACES_A_POST = 200  # about 2 MB; receivers take 4 to 20
_TIMEOUT_S = 30.0
_INTERNAL, _SERVER = 1, 2  # span kinds
_OK, _ERROR = 1, 2  # span states
Span = dict[str, Any]


def send_otlp(run: StoredRun, url: str, limit: int) -> tuple[int, int]:
    """Send the spans of a run's first requests and of their batches; returns how many requests, and of how many.

    Raises ConfigError for a URL that is none, TargetFailed when the receiver is not there or refuses.
    """
    where = _endpoint(url)
    requests, batches = run.table("requests"), spans.table_of(run, "batches")
    shown = requests.sort_values(["scheduled_ns", "accepted_ns"], kind="stable").head(limit)
    lives = list(spans.request_lives(shown, batches))
    wanted = {life.batch for life in lives}
    through = (life for life in spans.batch_lives(batches) if life.batch in wanted)
    shift_ns = _shift_ns(run)
    traces = itertools.chain(_traces(run, lives, shift_ns), _batch_traces(run, through, shift_ns))
    while chunk := list(itertools.islice(traces, _TRACES_A_POST)):
        _post(where, otlp_document(run, itertools.chain.from_iterable(chunk)))
    return len(shown), len(requests)


def otlp_document(run: StoredRun, found: Iterable[Span]) -> dict[str, Any]:
    """Spans with what they have in common: the service, the run, and whether a figure is simulated."""
    manifest = run.manifest
    resource = {
        "service.name": manifest.title or "service",
        "perfkit.run": manifest.id,
        "perfkit.simulated": manifest.simulated,
        "perfkit.commit": str(manifest.source.get("commit", "")),
    }
    scope = {"name": "perfkit", "version": __version__}
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": _attributes(resource)},
                "scopeSpans": [{"scope": scope, "spans": list(found)}],
            }
        ]
    }


def _traces(run: StoredRun, lives: Iterable[spans.Life], shift_ns: int) -> Iterator[list[Span]]:
    for life in lives:
        key = f"{run.manifest.id}/request/{life.facts.get('round', 0)}/{life.facts['request_id']}"
        root = _span(key, "request", life, shift_ns) | {"kind": _SERVER}
        ended_well = life.facts.get("end_state") == EndState.OK.label
        error = str(life.facts.get("error") or life.facts.get("end_state"))
        root["status"] = {"code": _OK} if ended_well else {"code": _ERROR, "message": error}
        if life.batch is not None:
            batch = _batch_key(run, life.batch)
            root["links"] = [{"traceId": _hex(batch, 16), "spanId": _hex(f"{batch}/root", 8)}]
        yield [root, *_stages(key, life, shift_ns)]


def _batch_traces(run: StoredRun, lives: Iterable[spans.Life], shift_ns: int) -> Iterator[list[Span]]:
    for life in lives:
        if life.batch is not None:
            key = _batch_key(run, life.batch)
            yield [_span(key, "batch", life, shift_ns) | {"kind": _INTERNAL}, *_stages(key, life, shift_ns)]


def _span(key: str, name: str, life: spans.Life, shift_ns: int) -> Span:
    return {
        "traceId": _hex(key, 16),
        "spanId": _hex(f"{key}/root", 8),
        "name": name,
        "startTimeUnixNano": str(life.start_ns + shift_ns),
        "endTimeUnixNano": str(life.end_ns + shift_ns),
        "attributes": _attributes({f"perfkit.{fact}": value for fact, value in life.facts.items()}),
    }


def _stages(key: str, life: spans.Life, shift_ns: int) -> list[Span]:
    return [
        {
            "traceId": _hex(key, 16),
            "spanId": _hex(f"{key}/{stage.name}/{stage.start_ns}", 8),
            "parentSpanId": _hex(f"{key}/root", 8),
            "name": stage.name,
            "kind": _INTERNAL,
            "startTimeUnixNano": str(stage.start_ns + shift_ns),
            "endTimeUnixNano": str(stage.end_ns + shift_ns),
        }
        for stage in life.stages
    ]


def _shift_ns(run: StoredRun) -> int:
    """From the run's monotonic clock to the calendar: a run is dated right after its last round, to the millisecond."""
    created = datetime.fromisoformat(run.manifest.created)
    ended_ns = max((int(one["ended_ns"]) for one in run.manifest.rounds), default=0)
    return round(created.timestamp() * NS_PER_S) - ended_ns


def _batch_key(run: StoredRun, batch: tuple[int, int]) -> str:
    return f"{run.manifest.id}/batch/{batch[0]}/{batch[1]}"


def _hex(text: str, length_bytes: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[: 2 * length_bytes]


def _attributes(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": name, "value": _any_value(value)} for name, value in values.items() if value is not None]


def _any_value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": str(value)}


def _endpoint(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"{url!r} is no address of a receiver; write for example http://127.0.0.1:4318")
    return url if parts.path.strip("/") else urlunsplit(parts._replace(path=_PATH))


def _post(url: str, document: Mapping[str, Any]) -> None:
    body, head = json.dumps(document).encode(), {"Content-Type": "application/json"}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, head), timeout=_TIMEOUT_S) as reply:
            answer = reply.read()
    except urllib.error.HTTPError as error:
        raise TargetFailed(f"{url} answered {error.code} {error.reason}; is it an OTLP receiver for traces?") from error
    except OSError as error:
        raise TargetFailed(f"{url} does not take spans: {error}; start the receiver or give its address") from error
    _refuse_partial(url, answer)


def _refuse_partial(url: str, answer: bytes) -> None:
    """A receiver may answer 200 and say in the body that it dropped some."""
    try:
        partial = json.loads(answer or b"{}").get("partialSuccess") or {}
        rejected = int(partial.get("rejectedSpans", 0))
    except (ValueError, AttributeError, TypeError):  # an answer in another form: the status has said it
        return
    if rejected:
        raise TargetFailed(f"{url} rejected {rejected} spans: {partial.get('errorMessage', 'no reason given')}")
