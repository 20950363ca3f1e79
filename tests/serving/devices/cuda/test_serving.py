"""Does the whole server run on the CUDA device? With a stand-in for the GPU in the server's own process."""

from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest

from perfkit.measuring.service import launch
from perfkit.serving.devices.cpu import CpuDevice
from sample_models.mlp import Mlp
from wire import Wire

INSTANTS = ("h2d_started", "h2d_ended", "compute_started", "compute_ended", "d2h_started", "d2h_ended")
ORDER = ("collated", *INSTANTS, "woken")


@pytest.fixture(scope="module")
def server():
    """A worker on a GPU whose memory holds no more than four rows a call."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parent.parent))  # a server can import what this process can
        with launch(model="gpu_models:OnFake", device="cuda", batch={"max_size": 8}) as service:
            yield service


def ask(service, rows):
    wire = Wire(urlsplit(service.url).port)
    try:
        return wire.ask("/predict", {"inputs": rows})
    finally:
        wire.close()


def answers_of_the_cpu(rows):
    model = Mlp()
    model.load(CpuDevice(), 0)
    return model.split(model.predict(model.collate([model.preprocess(row) for row in rows]).inputs), len(rows))


def test_requests_cross_to_the_gpu_and_back_with_every_instant_in_its_order(server):
    rows = [[number / 64 + column for column in range(64)] for number in range(40)]
    before = server.stats()["ledger"]["batches"]
    answer = ask(server, rows)
    computed = [batch for batch in server.ledger("batches", before).to_pylist() if batch["d2h_ended_ns"]]
    device = server.stats()["device"]
    assert (answer.status, device["name"]) == (200, "cuda")
    assert device["uuid"] == "00000000-0000-0000-0000-000000000007"
    assert np.allclose(answer.json["outputs"], answers_of_the_cpu(rows), atol=1e-4)
    instants = [[batch[f"{name}_ns"] for name in ORDER] for batch in computed]
    assert all(0 not in row and row == sorted(row) for row in instants)
    assert sum(batch["size"] for batch in computed) == len(rows)
    assert device["figures"]["device_allocated_bytes"] >= 33_000_000  # the MLP's weights


def test_a_batch_that_does_not_fit_is_served_in_parts_and_the_next_ones_are_no_larger(server):
    rows = [[float(number)] * 64 for number in range(16)]
    assert ask(server, rows).status == 200
    first = server.stats()
    assert ask(server, rows).status == 200
    then = server.stats()
    ooms = [stats["device"]["figures"]["device_oom_count"] for stats in (first, then)]
    assert (then["batch_cap"], ooms[0] >= 1, ooms[1]) == (4, True, ooms[0])
