"""What happens to a job whose preprocess or postprocess runs in a child process?

As in `stages`, with the way there and back as stages of their own: the child stamps when the job reached
it and when it was done with it, on the clock that all processes of a host share.
"""

from __future__ import annotations

from typing import Any

from perfkit.records import EndState
from perfkit.serving.instrument import columns as c
from perfkit.serving.instrument.ledger import Ledger
from perfkit.serving.server.elsewhere.child import ChildDied
from perfkit.serving.server.elsewhere.messages import (
    DONE,
    POSTPROCESS,
    PREPROCESS,
    REFUSED,
    TO_JSON,
    Reply,
    read_failure,
    read_reply,
)
from perfkit.serving.server.elsewhere.outpost import Outpost
from perfkit.serving.server.elsewhere.packing import pack, unpack
from perfkit.serving.server.job import Job, to_json
from perfkit.serving.server.stages import describe, fail


def preprocess(outpost: Outpost, ledger: Ledger, job: Job) -> bool:
    """Payload to item, in the outpost's child. False when the job has ended instead."""
    if job.is_over(ledger.clock):
        return False
    cells, row, now_ns = ledger.cells, job.row, ledger.now_ns
    cells[row + c.PREPROCESS_STARTED] = now_ns()
    try:
        message = PREPROCESS + pack(job.payload)
    except Exception as error:  # a thousand lists in each other, for example
        job.end(EndState.REFUSED, "input_refused", f"the input cannot be handed to a process: {describe(error)}")
        return False
    reply = _ask(outpost, job, message)
    if reply is None:
        return False
    cells[row + c.PREPROCESS_THREAD] = reply.thread_id
    cells[row + c.PREPROCESS_REACHED] = reply.reached_ns
    cells[row + c.PREPROCESS_CPU] = reply.cpu_ns
    cells[row + c.PREPROCESS_ENDED] = reply.ended_ns
    if reply.verdict != DONE:
        _end(job, reply, "preprocess")
        return False
    try:
        job.item = unpack(reply.body)
    except Exception as error:  # its class may live in the child only
        fail(job, type(error).__name__, describe(error), "the way back from preprocess")
        return False
    cells[row + c.PREPROCESS_RETURNED] = now_ns()
    return True


def postprocess(outpost: Outpost, ledger: Ledger, job: Job, output: Any) -> None:
    """Model output to what the answer carries of it, in the outpost's child; the job has ended afterwards.

    JSON is written in the child. What another protocol wants is written here, once the answer has come.
    """
    if job.is_over(ledger.clock):
        return
    cells, row, now_ns = ledger.cells, job.row, ledger.now_ns
    cells[row + c.POSTPROCESS_STARTED] = now_ns()
    try:
        message = (TO_JSON if job.encode is to_json else POSTPROCESS) + pack(output)
    except Exception as error:  # a model may make what cannot leave its process
        fail(job, type(error).__name__, describe(error), "the way to postprocess")
        return
    reply = _ask(outpost, job, message)
    if reply is None:
        return
    cells[row + c.POSTPROCESS_THREAD] = reply.thread_id
    cells[row + c.POSTPROCESS_REACHED] = reply.reached_ns
    cells[row + c.POSTPROCESS_CPU] = reply.cpu_ns
    cells[row + c.POSTPROCESS_ENDED] = reply.ended_ns
    if reply.verdict != DONE:
        _end(job, reply, "postprocess")
        return
    try:
        job.output = reply.body if job.encode is to_json else job.encode(unpack(reply.body))
    except Exception as error:
        fail(job, type(error).__name__, describe(error), "the way back from postprocess")
        return
    cells[row + c.SERIALISED] = reply.serialised_ns
    cells[row + c.POSTPROCESS_RETURNED] = now_ns()
    job.end(EndState.OK)


def _ask(outpost: Outpost, job: Job, message: bytes) -> Reply | None:
    """The child's reply; None when there is none and the job has ended with the reason."""
    try:
        return read_reply(outpost.ask(message))
    except ChildDied as death:
        job.end(EndState.FAILED, "process_died", str(death))
        return None


def _end(job: Job, reply: Reply, stage: str) -> None:
    text, kind = read_failure(reply.body)
    if reply.verdict == REFUSED:
        job.end(EndState.REFUSED, "input_refused", text)
    else:
        fail(job, kind, text, stage)
