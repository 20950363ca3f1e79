"""A device refuses what does not fit and stays as it was."""

import pytest

from perfkit.serving.devices.device import Buffer, Memory, OutOfDeviceMemory
from perfkit.serving.devices.memory import MemoryAccount


def test_a_buffer_that_does_not_fit_is_refused_and_only_the_refusal_is_counted():
    account = MemoryAccount(capacity_bytes=100)
    account.take(Buffer(nbytes=60, is_pinned=False))
    with pytest.raises(OutOfDeviceMemory, match="50 bytes asked for, 40 of 100 are free"):
        account.take(Buffer(nbytes=50, is_pinned=False))
    account.take(Buffer(nbytes=500, is_pinned=True))  # memory of the host
    assert account.memory() == Memory(allocated_bytes=60, peak_bytes=60, pinned_bytes=500, capacity_bytes=100, ooms=1)
