"""What happens to a job in preprocess and in postprocess, wherever the two run?

Each function stamps the ledger around the model's own code and turns whatever that code raises
into the job's end. Its CPU time counts from the last boundary of `cpu`. Nothing here waits for anything.
"""

from __future__ import annotations

import logging
import threading
from typing import Any

from perfkit.records import EndState
from perfkit.serving.instrument import columns as c
from perfkit.serving.instrument.cpulap import CpuLap
from perfkit.serving.instrument.ledger import Ledger
from perfkit.serving.server.job import Job
from perfkit.serving.server.model import InputRefused, Model

_MAX_TEXT = 1000  # characters: a model may put its whole input into an error
_log = logging.getLogger("perfkit.server")


class _Here(threading.local):
    """The calling thread's native id, asked of the kernel once a thread instead of once a stamp."""

    def __init__(self) -> None:
        self.native_id = threading.get_native_id()


_here = _Here()


def preprocess(model: Model, ledger: Ledger, job: Job, cpu: CpuLap) -> bool:
    """Payload to item. False when the job has ended instead (gone, expired, refused, or the model raised)."""
    if (job.is_gone or job.deadline_ns) and job.is_over(ledger.clock):
        return False
    cells, row, now_ns = ledger.cells, job.row, ledger.now_ns
    cells[row + c.PREPROCESS_THREAD] = _here.native_id
    cells[row + c.PREPROCESS_STARTED] = now_ns()
    try:
        job.item = model.preprocess(job.payload)
    except BaseException as error:  # a model's sys.exit() must not end the thread and leave its requests behind
        end_with(job, error, "preprocess")
        return False
    finally:
        cells[row + c.PREPROCESS_CPU] = cpu.lap_ns()
        cells[row + c.PREPROCESS_ENDED] = now_ns()
    return True


def postprocess(model: Model, ledger: Ledger, job: Job, output: Any, cpu: CpuLap) -> None:
    """Model output to what the answer carries of it; the job has ended afterwards, well or not."""
    if (job.is_gone or job.deadline_ns) and job.is_over(ledger.clock):
        return
    cells, row, now_ns = ledger.cells, job.row, ledger.now_ns
    cells[row + c.POSTPROCESS_THREAD] = _here.native_id
    cells[row + c.POSTPROCESS_STARTED] = now_ns()
    try:
        answer = model.postprocess(output)
        cells[row + c.POSTPROCESS_CPU] = cpu.lap_ns()
        cells[row + c.POSTPROCESS_ENDED] = now_ns()
        job.output = job.encode(answer)
    except BaseException as error:
        end_with(job, error, "postprocess")
        return
    cells[row + c.SERIALISED] = now_ns()
    job.end(EndState.OK)


def end_with(job: Job, error: BaseException, stage: str) -> None:
    """The model's code raised: refused input is the client's fault, everything else the service's."""
    if isinstance(error, InputRefused):
        job.end(EndState.REFUSED, "input_refused", describe(error))
    else:
        fail(job, kind_of(error), describe(error), stage)


class ModelRaised(Exception):
    """What a model raised in another process: the type is known by its name only."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


def kind_of(error: BaseException) -> str:
    """The name of the type of what a model raised, wherever it ran."""
    return error.kind if isinstance(error, ModelRaised) else type(error).__name__


def fail(job: Job, kind: str, text: str, stage: str) -> None:
    """The model raised an error of some kind, wherever it ran."""
    _log.error("model raised in %s: %s: %s", stage, kind, text)
    job.end(EndState.FAILED, "model_error", f"the model raised {kind} in {stage}: {text}")


def describe(error: BaseException) -> str:
    """The error's own words on one line, for the log and the client; foreign code may even fail at these."""
    try:
        return " ".join(str(error).split())[:_MAX_TEXT]
    except Exception:
        return "no text"
