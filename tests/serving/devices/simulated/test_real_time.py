"""Do sixteen real threads get from the timeline what virtual time says, and is their waking told apart from it?

Slow: it takes the time that it takes. Device time comes from the timeline and is exact however late a
thread looks; wake lag, from the end on the device to the thread's next line, is the machine's.
"""

from statistics import mean, median
from threading import Thread
from types import SimpleNamespace

import pytest

from perfkit.clock import NS_PER_S, REAL_CLOCK
from perfkit.serving.devices.simulated.device import SimulatedDevice
from perfkit.serving.devices.simulated.preset import COMPUTE, load_preset
from perfkit.serving.devices.simulated.virtual import run_closed

THREADS = 16
REQUESTS_EACH = 100
PACE = 0.25  # a quarter of the preset's times


def carry(device, lane, calls):
    """One thread of the article's service: one request after another through every stage."""
    service, batch = device.preset.service, SimpleNamespace(inputs=None, size=1, nbytes=0)
    for _ in range(REQUESTS_EACH):
        with_visit = device.enter()
        device.work(service.preprocess)
        _, instants = lane.run(lambda inputs: device.launch(service.predict, 1), batch)
        calls.append((instants, REAL_CLOCK.now_ns()))
        device.work(service.postprocess)
        with_visit.leave()


@pytest.mark.slow
def test_sixteen_threads_in_real_time_come_within_a_tenth_of_the_table_and_of_virtual_time(record_property):
    preset = load_preset(f"s003-threads@{PACE}")
    device, calls = SimulatedDevice(preset, seed=3), []
    lanes = [device.open_lane(f"model-{number}") for number in range(THREADS)]
    threads = [Thread(target=carry, args=(device, lane, calls)) for lane in lanes]
    started_ns = REAL_CLOCK.now_ns()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = (REAL_CLOCK.now_ns() - started_ns) / NS_PER_S
    throughput_rps = len(calls) / seconds
    busy_ratio = device.stats()[f"simulated_{COMPUTE}_busy_s"] / seconds
    lags_s = [(woken_ns - instants.compute_ended_ns) / NS_PER_S for instants, woken_ns in calls]
    device_s = [(one.compute_ended_ns - one.compute_started_ns) / NS_PER_S for one, _ in calls]
    figures = {"throughput_rps": throughput_rps, "wake_lag_p50_s": median(lags_s), "device_mean_s": mean(device_s)}
    for name, value in figures.items():
        record_property(name, value)
    print(figures)
    virtual = run_closed(preset, customers=THREADS, workers=THREADS, requests=100_000, seed=7)
    published = next(row for row in preset.table_rows if row.concurrency == THREADS)
    assert throughput_rps == pytest.approx(published.throughput_rps, rel=0.1)
    assert throughput_rps == pytest.approx(virtual.throughput_rps, rel=0.1)
    assert busy_ratio == pytest.approx(virtual.busy_ratio[COMPUTE], rel=0.1)
    assert mean(device_s) == pytest.approx(preset.device.compute_s(1), rel=0.1)
    assert min(lags_s) >= 0
