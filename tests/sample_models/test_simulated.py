"""The simulated model: a preset's times behind the model protocol, without torch."""

import os
import subprocess
import sys

import pytest

from perfkit.clock import RealClock
from perfkit.errors import ConfigError
from perfkit.serving.devices.cpu import CpuDevice
from perfkit.serving.devices.simulated.device import SimulatedDevice
from perfkit.serving.devices.simulated.preset import load_preset
from sample_models.simulated import SimulatedModel

MS = 1_000_000


class LeapClock(RealClock):
    """Whoever sleeps arrives at once: virtual time for a single thread."""

    def __init__(self) -> None:
        self.at_ns = 0

    def now_ns(self) -> int:
        return self.at_ns

    def sleep_until(self, until_ns: int) -> None:
        self.at_ns = max(self.at_ns, until_ns)


def serve(model, device, payloads):
    """What a server does with one batch: the answers and the device's instants."""
    lane = device.open_lane(worker="model-0")
    items = [model.preprocess(payload) for payload in payloads]
    outputs, instants = lane.run(model.predict, model.collate(items))
    del items
    answers = [model.postprocess(output) for output in model.split(outputs, len(payloads))]
    lane.close()
    return answers, instants


def loaded(name):
    model, device = SimulatedModel(name), SimulatedDevice(load_preset(name), clock=LeapClock())
    model.load(device, seed=0)
    return model, device


@pytest.mark.parametrize("payload", [None, 3, "text", [1, 2], {"a": {"b": None}}])
def test_any_payload_gets_an_answer_that_says_simulated(payload):
    model, device = loaded("s001-a10")
    answers, _ = serve(model, device, [payload])
    assert answers == [{"simulated": True, "preset": "s001-a10", "size": 1}]


def test_a_batch_pays_the_host_work_of_a_call_once_and_the_device_work_per_request():
    model, device = loaded("s001-a10")
    answers, instants = serve(model, device, ["a", "b", "c"])
    preprocessed_ns = 3 * 115_670_000
    assert [answer["size"] for answer in answers] == [3, 3, 3]
    assert instants.compute_started_ns == preprocessed_ns + 3_330_000
    assert instants.compute_ended_ns - instants.compute_started_ns == 286_000 + 3 * 714_000
    assert instants.h2d_started_ns == instants.d2h_ended_ns == 0


def test_a_preset_with_bytes_has_copies_around_its_device_work():
    model, device = loaded("bert-large")
    _, instants = serve(model, device, ["a"])
    assert 0 <= instants.h2d_started_ns < instants.h2d_ended_ns <= instants.compute_started_ns
    assert instants.compute_ended_ns <= instants.d2h_started_ns < instants.d2h_ended_ns


def test_requests_are_in_flight_from_preprocess_to_the_end_of_postprocess():
    model, device = loaded("s002-textcls")
    first, second = model.preprocess(1), model.preprocess(2)
    assert device.in_flight == 2
    lane = device.open_lane(worker="model-0")
    outputs, _ = lane.run(model.predict, model.collate([first]))
    model.postprocess(model.split(outputs, 1)[0])
    assert device.in_flight == 1
    del second  # expired in the queue: nobody holds it any more
    assert device.in_flight == 0


def test_a_device_that_does_not_play_the_preset_is_refused():
    model = SimulatedModel("s003-threads")
    for device in (CpuDevice(), SimulatedDevice(load_preset("s001-a10"))):
        with pytest.raises(ConfigError, match="does not play s003-threads"):
            model.load(device, seed=0)


def test_an_unknown_preset_is_refused_when_the_model_is_made():
    with pytest.raises(ConfigError, match="unknown preset 'nothing'; known: bert-large"):
        SimulatedModel("nothing")


def test_it_runs_without_importing_torch():
    code = (
        "import sys; from sample_models.simulated import SimulatedModel;"
        "from perfkit.serving.devices.simulated.device import SimulatedDevice;"
        "model = SimulatedModel('bert-large'); device = SimulatedDevice(model.preset); model.load(device, 0);"
        "lane = device.open_lane('model-0'); item = model.preprocess(model.example());"
        "outputs, _ = lane.run(model.predict, model.collate([item]));"
        "print(model.postprocess(model.split(outputs, 1)[0])['preset'], 'torch' in sys.modules, 'numpy' in sys.modules)"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["bert-large", "False", "False"]
