"""What does the simulator say about N threads, given what one thread alone showed?"""

from __future__ import annotations

from perfkit.serving.devices.simulated.preset import DeviceParts, HostPart, Preset, ServiceParts
from perfkit.serving.devices.simulated.virtual import run_closed

_REQUESTS = 400


def predict_rps(threads: int, launch_s: float, device_s: float, solo_s: float) -> float:
    """Throughput of threads that each launch behind one lock, compute on one device, and wait for the rest.

    `launch_s` is the host's time inside the call, `device_s` the device's, `solo_s` the whole of one thread alone.
    """
    rest_s = max(0.0, solo_s - launch_s - device_s)
    preset = Preset(
        name="gpucheck",
        source="measured with one thread",
        service=ServiceParts(predict=HostPart(parallel_s=rest_s, serial_s=launch_s)),
        device=DeviceParts(alpha_s=device_s),
    )
    return run_closed(preset, customers=threads, workers=threads, requests=_REQUESTS).throughput_rps
