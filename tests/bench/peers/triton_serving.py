"""The same network behind Triton's core with its Python backend (pytriton), window of 4 ms.

PORT NETWORK MAX_SIZE WORKERS
"""

import sys

import numpy
from networks import load_arrays
from pytriton.decorators import batch
from pytriton.model_config import DynamicBatcher, ModelConfig, Tensor
from pytriton.triton import Triton, TritonConfig

WINDOW_US = 4000
_answer = load_arrays(sys.argv[2])


@batch
def infer(input):
    """Rows in, rows out, in whatever batch Triton gathers."""
    return {"output": _answer(input)}


if __name__ == "__main__":
    max_size = int(sys.argv[3])
    window_us = WINDOW_US if max_size > 1 else 0
    config = ModelConfig(max_batch_size=max_size, batcher=DynamicBatcher(max_queue_delay_microseconds=window_us))
    rows = {"dtype": numpy.float32, "shape": (-1,)}
    with Triton(
        config=TritonConfig(http_address="127.0.0.1", http_port=int(sys.argv[1]), allow_grpc=False, allow_metrics=False)
    ) as triton:
        triton.bind(
            model_name="network",
            infer_func=[infer] * int(sys.argv[4]),  # an instance each
            inputs=[Tensor(name="input", **rows)],
            outputs=[Tensor(name="output", **rows)],
            config=config,
        )
        triton.serve()
