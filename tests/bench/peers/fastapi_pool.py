"""A plain FastAPI service: a `def` endpoint, which runs in the framework's pool of threads. PORT NETWORK"""

import sys

import uvicorn
from fastapi import FastAPI
from networks import load_network
from pydantic import BaseModel

_network = load_network(sys.argv[2])
app = FastAPI()


class Question(BaseModel):
    """The body of a request."""

    input: list[float]


@app.post("/predict")
def predict(question: Question):
    """One row through the network."""
    return {"output": _network([question.input])[0]}


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), access_log=False, log_level="warning")
