"""The same network behind LitServe: worker processes, its own batching, a window of 4 ms.

PORT NETWORK MAX_SIZE WORKERS
"""

import sys

import litserve
from networks import load_network

WINDOW_S = 0.004


class Serving(litserve.LitAPI):
    """Rows in, rows out, with and without batching. LitServe finds arguments by the names used here."""

    def setup(self, device):
        self.answer = load_network(sys.argv[2])

    def decode_request(self, request):
        return request["input"]

    def batch(self, inputs):
        return inputs

    def predict(self, x):
        is_batch = isinstance(x[0], list)
        return self.answer(x) if is_batch else self.answer([x])[0]

    def unbatch(self, output):
        return output

    def encode_response(self, output):
        return {"output": output}


if __name__ == "__main__":
    max_size = int(sys.argv[3])
    window = {"max_batch_size": max_size, "batch_timeout": WINDOW_S} if max_size > 1 else {}
    server = litserve.LitServer(Serving(**window), accelerator="cpu", workers_per_device=int(sys.argv[4]))
    server.run(port=int(sys.argv[1]), host="127.0.0.1", generate_client_file=False, log_level="warning")
