"""Which calls does a worker make before anybody waits for it, and what if one of them does not fit the device?"""

from types import SimpleNamespace

import pytest

from perfkit.errors import TargetFailed
from perfkit.serving.devices.cpu import CpuDevice
from perfkit.serving.devices.device import OutOfDeviceMemory
from perfkit.serving.server.warmup import warm_up_sizes


class Small(CpuDevice):
    """A device with memory for so many requests in one call."""

    def __init__(self, most):
        super().__init__()
        self.most = most
        self.sizes = []

    def run(self, call, inputs, stream, span):
        self.sizes.append(len(inputs))
        if len(inputs) > self.most:
            raise OutOfDeviceMemory(f"{len(inputs)} do not fit")
        return super().run(call, inputs, stream, span)


@pytest.mark.parametrize(
    ("is_simulated", "has_copies", "most", "sizes"),
    [
        (True, True, 8, ()),
        (False, False, 1, (1,)),
        (False, False, 24, (1, 24)),
        (False, True, 1, (1,)),
        (False, True, 24, (1, 2, 4, 8, 16, 24)),
        (False, True, 32, (1, 2, 4, 8, 16, 32)),
    ],
)
def test_a_device_with_memory_of_its_own_meets_every_power_of_two(is_simulated, has_copies, most, sizes):
    device = SimpleNamespace(is_simulated=is_simulated, has_copies=has_copies)
    assert warm_up_sizes(device, most) == sizes


def test_a_size_that_does_not_fit_lowers_the_cap_before_anybody_waits(open_shop):
    device = Small(most=5)
    shop = open_shop(device, **{"batch.max_size": 8})
    assert (device.sizes, shop.pipeline.batch_cap) == ([1, 8], 4)


def test_a_device_without_memory_for_one_request_lets_no_server_start(open_shop):
    with pytest.raises(TargetFailed, match=r"^a model worker cannot start: OutOfDeviceMemory: 1 do not fit$"):
        open_shop(Small(most=0))
