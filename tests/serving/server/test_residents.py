"""Do replicas whose copies do not all fit the device load them by turns, and is the stall a stage of its own?"""

from __future__ import annotations

import functools
import re

import pytest

from perfkit.errors import ConfigError
from perfkit.measuring.service import launch
from perfkit.records import EndState
from perfkit.serving.devices.cpu import CpuDevice
from perfkit.serving.instrument import columns as c

WEIGHTS_OVER_BANDWIDTH_MS = 670_000_000 / 50e9 * 1e3 + 0.01  # what data/presets/bert-large.toml says


def one_slot(open_shop, device=None):
    """Two replicas of one worker each on a device with room for one copy."""
    return open_shop(device, replicas=2, workers=1, **{"resident.models": 1})


def test_in_turn_the_third_replica_pushes_the_least_recently_used_copy_out(dial):
    changes = {"replicas": 3, "workers": 1, "resident": {"models": 2}}
    with launch(model="simulated:bert-large", **changes) as service:
        wire, stalls_ms = dial(service), []
        for _ in range(6):
            wire.post({"input": "x"}, "Perfkit-Timing: 1")
            timing = wire.answer().headers["server-timing"]
            stalls_ms.append(float(re.search(r"model_load;dur=([\d.]+)", timing)[1]))
        resident = service.stats()["resident"]
    assert [stall_ms >= WEIGHTS_OVER_BANDWIDTH_MS for stall_ms in stalls_ms] == [False, False, True, True, True, True]
    assert (resident["on_device"], resident["loads"], resident["weights_bytes"]) == ([1, 2], 4, 670_000_000)
    assert resident["loading_s"] >= 4 * WEIGHTS_OVER_BANDWIDTH_MS / 1e3


def test_replicas_that_share_one_copy_have_no_such_stage(open_shop, eventually, finished):
    shop = open_shop(replicas=2, workers=1)
    shop.model.gate.set()
    shop.ask(1)
    eventually(lambda: finished.jobs)
    assert finished.jobs[0].batch_row[c.B_MODEL_LOADED] == 0
    assert shop.pipeline.resident() is None


def test_a_request_that_expires_while_its_copy_waits_for_a_slot_never_reaches_the_model(
    open_shop, eventually, finished
):
    shop = one_slot(open_shop)
    shop.ask(1)
    eventually(lambda: shop.model.batches == [[1]])
    (late,), _ = shop.ask(2)
    eventually(lambda: shop.pipeline.resident()["waiting"] == 1)
    late.deadline_ns = 1
    shop.model.gate.set()
    eventually(lambda: len(finished.jobs) == 2)
    assert (late.end_state, shop.model.batches) == (EndState.EXPIRED, [[1]])
    assert shop.pipeline.resident()["on_device"] == [1]


def test_a_load_that_fails_takes_its_own_batch_and_no_other(open_shop, eventually, finished):
    class FailsOnce(CpuDevice):
        failures = 1

        def run(self, call, inputs, stream, span):
            if isinstance(call, functools.partial) and self.failures:
                self.failures -= 1
                raise OSError("the bus is gone")
            return super().run(call, inputs, stream, span)

    shop = one_slot(open_shop, FailsOnce())
    shop.model.gate.set()
    for number in (1, 2, 3, 4):
        shop.ask(number)
        eventually(lambda: sum(shop.pipeline.loads()) == 0)
    assert [job.end_state for job in finished.jobs] == [EndState.OK, EndState.FAILED, EndState.OK, EndState.OK]
    assert shop.pipeline.resident()["on_device"] == [1]


def test_a_model_that_keeps_its_weights_to_itself_is_refused():
    with pytest.raises(ConfigError, match=r"give the model a method weights\(\)"):
        launch(model="noop", replicas=2, resident={"models": 1})


def test_slots_that_do_not_fit_are_refused_by_the_settings_name():
    message = r"resident\.models is 40, for which the device is too small: 4300000000 bytes asked for, 1300000000 of"
    with pytest.raises(ConfigError, match=message):
        launch(model="simulated:s003-threads", topology="staged", workers=1, replicas=40, resident={"models": 40})
