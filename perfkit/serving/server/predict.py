"""What happens to a prediction, by whichever protocol it came, between its bytes and its answer?

On the event loop: parse, ask for admission, submit; and when every input of the request has ended,
write the answer and close the books on it.
"""

from __future__ import annotations

import logging
from asyncio import TimerHandle
from typing import TYPE_CHECKING, Any

from perfkit.records import EndState
from perfkit.serving.instrument import columns as c
from perfkit.serving.scheduling.decisions import Rejected
from perfkit.serving.server.call import Call, MalformedRequest, Reader
from perfkit.serving.server.connection import Request
from perfkit.serving.server.deadline import DEADLINE, read_deadline_ns
from perfkit.serving.server.gate import Pass
from perfkit.serving.server.job import Job
from perfkit.serving.server.rejections import REJECTIONS
from perfkit.serving.server.replies import JSON, error_body, response, retry_after
from perfkit.serving.server.slow_requests import SlowRequest
from perfkit.serving.server.timing import server_timing
from perfkit.serving.server.wishes import BATCH, Wishes, read_wishes

if TYPE_CHECKING:
    from perfkit.serving.server.service import Service

_STATUS = {
    EndState.OK: 200,
    EndState.REJECTED: 503,
    EndState.EXPIRED: 504,
    EndState.CANCELLED: 503,
    EndState.REFUSED: 422,
    EndState.FAILED: 500,
}
_INTERNAL = "the server failed on this request; its log says why"
_log = logging.getLogger("perfkit.server")
_NS_PER_MS = 1_000_000
_RETRY_LATER = (EndState.REJECTED, EndState.EXPIRED)


class Prediction:
    """One request for a prediction. For the event loop's thread."""

    __slots__ = (
        "_alarm",
        "_arrived_ns",
        "_call",
        "_deadline_ns",
        "_granted",
        "_jobs",
        "_left",
        "_pipeline",
        "_queued_on_arrival",
        "_request",
        "_service",
    )

    def __init__(self, service: Service, request: Request) -> None:
        self._service = service
        self._request = request
        self._jobs: list[Job] = []
        self._left = 0
        self._call: Call | None = None  # None until the request could be read
        self._pipeline = service.pipeline
        self._granted: Pass | None = None  # of the pipeline's gate, when it has one
        self._deadline_ns = 0
        self._alarm: TimerHandle | None = None  # rings at the deadline, when there is one
        self._arrived_ns = request.connection.arrived_ns
        self._queued_on_arrival = self._pipeline.queued if service.slow_log is not None else 0

    def begin(self, read: Reader) -> None:
        """Parse by `read`, admit, submit; or answer at once with the reason why not."""
        service, ledger = self._service, self._service.books.requests
        row = ledger.open()
        ledger.cells[row + c.ACCEPTED] = self._request.accepted_ns if ledger.stamps else 0
        ledger.cells[row + c.REQUEST_ID] = _client_id(self._request.headers)
        try:
            call, wishes = self._read(read)
        except MalformedRequest as error:
            self._rows_from(row, [None])
            self._refuse(EndState.REFUSED, error.status, error.code, str(error))
            return
        except Exception:
            _log.exception("cannot read a request for %s", self._request.target[:200])
            self._rows_from(row, [None])
            self._refuse(EndState.FAILED, 500, "internal", _INTERNAL)
            return
        self._rows_from(row, call.payloads)
        if self._deadline_ns and service.clock.now_ns() >= self._deadline_ns:
            self._refuse(EndState.EXPIRED, 504, "deadline", "the deadline had passed when the request was read")
            return
        for job in self._jobs:
            job.encode = call.encode
            if wishes is not None:
                job.lane, job.is_alone = wishes.lane, wishes.is_alone
        rejected = self._admit()
        if rejected is not None:
            for job in self._jobs:
                job.retry_after_s = rejected.retry_after_s
            status = 429 if rejected.reason == "rate_limited" else 503
            self._refuse(EndState.REJECTED, status, rejected.reason, REJECTIONS[rejected.reason])
            return
        self._request.connection.on_gone = self._client_left
        if self._deadline_ns:
            self._alarm = self._pipeline.call_at(self._deadline_ns, self._expire)

    def job_done(self, job: Job) -> None:
        """One input has ended; the answer leaves with the last."""
        self._left -= 1
        if self._left == 0:
            self._answer()

    def _read(self, read: Reader) -> tuple[Call, Wishes | None]:
        """What the request holds, and wishes for when there is anything to wish for; raises MalformedRequest."""
        headers, deadline_s, wishes = self._request.headers, self._service.settings.queue.deadline_s, None
        if self._pipeline.lanes is not None or BATCH in headers:
            wishes = read_wishes(headers, self._pipeline.lanes, deadline_s)
            deadline_s = wishes.deadline_s
        if deadline_s is not None or DEADLINE in headers:
            self._deadline_ns = read_deadline_ns(self._request, deadline_s)
        self._call = read(self._service, self._request)
        return self._call, wishes

    def _admit(self) -> Rejected | None:
        """Past the gate, where there is one, and into the queue; or why not."""
        gate = self._pipeline.gate
        if not self._service.is_ready:
            return self._service.not_ready()
        if gate is None:
            return self._pipeline.enter(self._jobs)
        granted = gate.ask(len(self._jobs), self._jobs[0].lane)
        if isinstance(granted, Rejected):
            return granted
        rejected = self._pipeline.enter(self._jobs)
        if rejected is None:
            self._granted = granted
        else:
            gate.take_back(granted)
        return rejected

    def _rows_from(self, first_row: int, inputs: list[Any]) -> None:
        """One job and one ledger row per input; the client's id goes with the first."""
        ledger = self._service.books.requests
        parsed_ns = ledger.now_ns()
        cells, row = ledger.cells, first_row
        for payload in inputs:
            if self._jobs:
                row = ledger.open()
                cells[row + c.ACCEPTED] = cells[first_row + c.ACCEPTED]
            cells[row + c.PARSED] = parsed_ns
            self._jobs.append(Job(payload, self, row, self._deadline_ns))
        self._left = len(self._jobs)
        self._service.accepted += self._left
        self._service.gauge.add(self._left, self._arrived_ns)

    def _refuse(self, state: EndState, status: int, code: str, message: str) -> None:
        for job in self._jobs:
            job.end(state, code, message)
        self._answer(status)

    def _client_left(self) -> None:
        for job in list(self._jobs):  # the last one to end empties it
            if self._pipeline.cancel(job):
                self.job_done(job)

    def _expire(self) -> None:
        """The deadline has come: what still waits ends here, what a thread has ends before its next stage."""
        now_ns = self._service.clock.now_ns()
        if now_ns < self._deadline_ns:  # the loop's timers are coarse, and may ring early
            self._alarm = self._pipeline.call_at(max(self._deadline_ns, now_ns + _NS_PER_MS), self._expire)
            return
        for job in list(self._jobs):
            if self._pipeline.expire(job):
                self.job_done(job)

    def _answer(self, status: int | None = None) -> None:
        if self._request.connection.is_gone:
            for job in self._jobs:
                job.end_state = EndState.CANCELLED  # whatever became of it, nobody got it
            now_ns = self._service.clock.now_ns()
            self._close_books(0, now_ns, now_ns)
            return
        worst = self._jobs[0] if len(self._jobs) == 1 else max(self._jobs, key=lambda job: job.end_state)
        state = worst.end_state
        status = status or _STATUS[state]
        extra = self._timing() if state is EndState.OK and self._wants_timing() else b""
        request, content_type = self._request, JSON
        if state is EndState.OK and self._call is not None:
            try:
                body = self._call.write([job.output for job in self._jobs])
            except Exception:
                self._fail_instead()
                return
            content_type, extra = self._call.content_type, extra + self._call.headers
        else:
            body = error_body(worst.code, worst.message, request.target)
            if state in _RETRY_LATER:
                extra += retry_after(worst.retry_after_s, self._service.chance.random())
            if state is EndState.REJECTED:
                self._service.rejects.update(job.code for job in self._jobs if job.end_state is state)
        closes = not request.keeps_alive
        # Stamped before the bytes leave: the client may have them before this thread runs on.
        replied_ns = self._service.clock.now_ns()
        reply = response(status, body, content_type, extra, closes=closes)
        answered_ns = request.connection.answer(reply, closes=closes)
        self._close_books(status, replied_ns, answered_ns or replied_ns)

    def _fail_instead(self) -> None:
        """The good answer cannot be written: nothing that the request holds may stay behind for that."""
        _log.exception("cannot write the answer to a request for %s", self._request.target[:200])
        for job in self._jobs:
            job.end_state = EndState.OPEN
        self._refuse(EndState.FAILED, 500, "internal", _INTERNAL)

    def _close_books(self, status: int, replied_ns: int, answered_ns: int) -> None:
        """The ledger has its own stamp of the reply; gauge and middleware use the connection's, to check it."""
        service, ledger = self._service, self._service.books.requests
        cells = ledger.cells
        service.gauge.add(-len(self._jobs), answered_ns)
        latency_ns = replied_ns - self._request.accepted_ns
        service.latency.observe(latency_ns)
        if self._granted is not None and self._pipeline.gate is not None:
            self._pipeline.gate.tell(self._granted, max(job.end_state for job in self._jobs))
        if self._alarm is not None:
            self._alarm.cancel()
        middleware_ns = answered_ns - self._arrived_ns if status else 0
        if not ledger.stamps:
            replied_ns = 0
        for job in self._jobs:
            row, end_state = job.row, job.end_state
            cells[row + c.REPLIED] = replied_ns
            cells[row + c.MIDDLEWARE] = middleware_ns
            cells[row + c.END_STATE] = end_state
            cells[row + c.STATUS] = status
            service.ended[end_state] += 1
            if job.batch_row:
                service.batch_sizes.requests_at[job.batch_row[c.B_SIZE]] += 1
            ledger.close(row)
        if service.slow_log is not None and service.slow_log.threshold.is_slow(latency_ns):
            service.slow_log.put(self._as_slow(latency_ns, answered_ns))
        self._jobs.clear()  # a job knows its receiver: without this every request would be left to the collector

    def _as_slow(self, latency_ns: int, answered_ns: int) -> SlowRequest:
        """What the log wants to know, of the first input where there are several. Its row was just closed."""
        ledger, job = self._service.books.requests, self._jobs[0]
        return SlowRequest(
            row=ledger.cells[job.row : job.row + ledger.width],
            batch_row=job.batch_row,
            latency_ns=latency_ns,
            queued_on_arrival=self._queued_on_arrival,
            traceparent=self._request.headers.get(b"traceparent"),
            answered_ns=answered_ns,
        )

    def _wants_timing(self) -> bool:
        return self._service.settings.http.server_timing or self._request.headers.get(b"perfkit-timing") == b"1"

    def _timing(self) -> bytes:
        ledger, job = self._service.books.requests, self._jobs[0]
        return server_timing(ledger.cells[job.row : job.row + ledger.width], job.batch_row)


def _client_id(headers: dict[bytes, bytes]) -> int:
    text = headers.get(b"perfkit-id", b"")
    return int(text) if text.isdigit() and len(text) <= 18 else 0
