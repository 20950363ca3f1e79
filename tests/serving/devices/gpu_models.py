"""Models that bring a stand-in for the GPU with them, for servers in processes of their own."""

import torch
from fake_cuda import FakeCuda, install

from sample_models.mlp import Mlp

GPU = FakeCuda()
install(GPU)
_MOST_ROWS = 4
_ROOM_BYTES = 64 << 20


class OnFake(Mlp):
    """The MLP on a GPU whose memory holds no more than four rows a call. A broken rule fails the request after it."""

    def load(self, device, seed):
        super().load(device, seed)
        GPU.capacity_bytes = GPU.allocated_bytes + _ROOM_BYTES + (1 << 20)

    def predict(self, inputs):
        if GPU.broken:
            raise GPU.broken[0]
        held = torch.empty(len(inputs) * _ROOM_BYTES // _MOST_ROWS, dtype=torch.uint8, device="cuda")
        assert held.is_cuda
        return super().predict(inputs)

    def example(self):
        return None  # not warmed up, so that requests meet the limit first
