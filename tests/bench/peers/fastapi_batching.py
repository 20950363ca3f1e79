"""FastAPI with the batching that people write by hand: a queue, a window of 4 ms, threads for the model.

PORT NETWORK MAX_SIZE WORKERS
"""

import asyncio
import contextlib
import sys
from concurrent.futures import ThreadPoolExecutor

import uvicorn
from fastapi import FastAPI
from networks import load_network
from pydantic import BaseModel

WINDOW_S = 0.004
_network = load_network(sys.argv[2])
_max_size = int(sys.argv[3])
_workers = int(sys.argv[4])
_waiting: asyncio.Queue = asyncio.Queue()


class Question(BaseModel):
    """The body of a request."""

    input: list[float]


async def _gather():
    """The next batch: its first item, and what joins it within the window."""
    batch = [await _waiting.get()]
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(WINDOW_S):
            while len(batch) < _max_size:
                batch.append(await _waiting.get())
    return batch


async def _serve_batches():
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(1) as thread:
        while True:
            batch = await _gather()
            answers = await loop.run_in_executor(thread, _network, [row for row, _ in batch])
            for (_, answered), answer in zip(batch, answers, strict=True):
                if not answered.done():
                    answered.set_result(answer)


async def _serve_all():
    async with asyncio.TaskGroup() as group:
        for _ in range(_workers):
            group.create_task(_serve_batches())


@contextlib.asynccontextmanager
async def _lifespan(_app):
    batches = asyncio.create_task(_serve_all())
    yield
    batches.cancel()


app = FastAPI(lifespan=_lifespan)


@app.post("/predict")
async def predict(question: Question):
    """One row, in whatever batch it gets into."""
    answered = asyncio.get_running_loop().create_future()
    _waiting.put_nowait((question.input, answered))
    return {"output": await answered}


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), access_log=False, log_level="warning")
