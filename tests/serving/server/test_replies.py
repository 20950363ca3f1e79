"""Are the bytes of an answer what HTTP asks for, and can finished work always be delivered?"""

from __future__ import annotations

import asyncio
import json

import pytest

from perfkit.serving.server import replies
from perfkit.serving.server.outbox import Outbox


def test_a_response_carries_its_length_and_what_was_asked_for(monkeypatch):
    monkeypatch.setattr(replies.DATE, "line", b"date: today\r\n")
    assert replies.response(200, b"{}") == (
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\ndate: today\r\n\r\n{}"
    )
    assert replies.response(503, b"", b"text/plain", b"retry-after: 1\r\n", closes=True) == (
        b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain\r\ncontent-length: 0\r\ndate: today\r\n"
        b"retry-after: 1\r\nconnection: close\r\n\r\n"
    )


def test_the_date_is_renewed_by_whoever_ticks():
    line = replies.Date().line
    assert (line[:6], line[-6:]) == (b"date: ", b" GMT\r\n")


@pytest.mark.parametrize(("message", "shown"), [("bad \udc80 name", "bad ? name"), ("ü" * 5000, "ü" * 1200)])
def test_any_error_text_can_be_sent(message, shown):
    assert json.loads(replies.error_body("code", message)) == {"error": {"code": "code", "message": shown}}


@pytest.mark.parametrize(("seconds", "line"), [(0.0, b"1"), (0.1, b"1"), (1.0, b"1"), (1.2, b"2"), (60.0, b"60")])
def test_retry_after_is_in_whole_seconds_and_at_least_one(seconds, line):
    assert replies.retry_after(seconds) == b"retry-after: " + line + b"\r\n"


class Recipient:
    """Notes that its job is done; may fail at it."""

    def __init__(self, log, name, failure=None):
        self.log, self.name, self.failure = log, name, failure

    def job_done(self, job):
        self.log.append(self.name)
        if self.failure:
            raise self.failure


class Done:
    def __init__(self, receiver):
        self.receiver = receiver


def test_one_answer_that_cannot_be_delivered_does_not_keep_the_others(log, caplog):
    async def deliver():
        outbox = Outbox(asyncio.get_running_loop())
        names = (("a", None), ("b", ValueError("broken")), ("c", None))
        await asyncio.to_thread(outbox.put, [Done(Recipient(log, name, failure)) for name, failure in names])
        await asyncio.to_thread(outbox.put, [Done(Recipient(log, "d"))])
        while len(log) < 4:
            await asyncio.sleep(0)
        outbox.close()

    asyncio.run(asyncio.wait_for(deliver(), 20))
    assert log == ["a", "b", "c", "d"]
    assert "cannot deliver a finished request" in caplog.text
