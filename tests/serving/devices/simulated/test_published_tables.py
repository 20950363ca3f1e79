"""The presets in virtual time against queueing theory and against the tables they come from.

Rows marked *fitted* in a preset were used to derive it; only *predicted* rows say that it holds.
"""

import dataclasses
from functools import cache

import pytest

from perfkit.serving.devices.simulated.engine import FIFO, RANDOM
from perfkit.serving.devices.simulated.preset import COMPUTE, HOST, load_preset
from perfkit.serving.devices.simulated.virtual import run_closed

REQUESTS = 100_000
THREADS = (1, 4, 8, 16)
TEXTCLS_ROWS = (1, 5, 10, 20, 40)


def mean_value_analysis(demands_s, delay_s, customers):
    """Exact throughput of a closed network of single servers and one delay (Reiser and Lavenberg 1980).

    With n customers a visit to a station finds the mean queue of n - 1: R = D (1 + Q(n - 1)),
    X = n / (Z + sum of R), Q = X R.
    """
    queues = [0.0] * len(demands_s)
    for present in range(1, customers + 1):
        residences_s = [demand * (1 + queue) for demand, queue in zip(demands_s, queues, strict=True)]
        throughput_rps = present / (delay_s + sum(residences_s))
        queues = [throughput_rps * residence for residence in residences_s]
    return throughput_rps


def network(preset):
    """Summed demands of the lock and of the device, and the parallel wait."""
    parts = (preset.service.preprocess, preset.service.predict, preset.service.postprocess)
    host_s, delay_s = sum(part.serial_s for part in parts), sum(part.parallel_s for part in parts)
    return (host_s, preset.device.compute_s(1)), delay_s


@cache
def threads_run(customers):
    return run_closed(load_preset("s003-threads"), customers=customers, workers=16, requests=REQUESTS, seed=7)


@cache
def textcls_run(customers, policy, requests=20_000):
    preset = load_preset("s002-textcls")
    preset = dataclasses.replace(preset, service=dataclasses.replace(preset.service, lock_policy=policy))
    return run_closed(preset, customers=customers, workers=40, requests=requests, seed=7)


@pytest.mark.parametrize("customers", THREADS)
def test_the_thread_table_agrees_with_exact_mean_value_analysis(customers):
    run = threads_run(customers)
    (host_s, device_s), delay_s = network(load_preset("s003-threads"))
    exact_rps = mean_value_analysis((host_s, device_s), delay_s, customers)
    assert run.throughput_rps == pytest.approx(exact_rps, rel=0.03)
    assert run.busy_ratio[HOST] == pytest.approx(exact_rps * host_s, rel=0.03)
    assert run.busy_ratio[COMPUTE] == pytest.approx(exact_rps * device_s, rel=0.03)


@pytest.mark.parametrize("customers", THREADS)
def test_every_request_of_a_closed_loop_is_accounted_for_by_littles_law(customers):
    run = threads_run(customers)
    assert len(run.latencies_ns) == REQUESTS
    assert run.throughput_rps * run.mean_latency_s == pytest.approx(customers, rel=0.01)


@pytest.mark.parametrize("row", load_preset("s003-threads").table_rows, ids=lambda row: f"{row.concurrency}-{row.kind}")
def test_the_thread_tables_throughput_lies_within_a_tenth_of_the_table(row):
    assert threads_run(row.concurrency).throughput_rps == pytest.approx(row.throughput_rps, rel=0.1)


@pytest.mark.parametrize("row", load_preset("s002-textcls").table_rows, ids=lambda row: f"{row.concurrency}-{row.kind}")
def test_the_text_services_throughput_lies_within_a_tenth_of_the_table(row):
    assert textcls_run(row.concurrency, RANDOM).throughput_rps == pytest.approx(row.throughput_rps, rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("row", load_preset("s002-textcls").table_rows, ids=lambda row: f"{row.concurrency}-{row.kind}")
def test_the_text_services_throughput_holds_with_a_hundred_thousand_requests(row):
    run = textcls_run(row.concurrency, RANDOM, REQUESTS)
    assert run.throughput_rps == pytest.approx(row.throughput_rps, rel=0.1)


def test_who_gets_the_lock_next_changes_the_text_services_tail_but_not_its_throughput():
    fifo, unfair = textcls_run(40, FIFO), textcls_run(40, RANDOM)
    assert unfair.throughput_rps == pytest.approx(fifo.throughput_rps, rel=0.02)
    assert unfair.latency_s(0.99) > 3 * fifo.latency_s(0.99)


def test_only_a_lock_without_order_comes_near_the_text_services_p99():
    """Published 0.155, 0.24, 0.68, 3.8, 9.0 s. The two crowded rows separate the policies.

    At concurrency 5 and 10 the lock without order overstates the tail (0.38 and 1.2 s): the shape
    agrees, not every figure.
    """
    published_s = {row.concurrency: row.p99_s for row in load_preset("s002-textcls").table_rows}
    unfair = {n: textcls_run(n, RANDOM).latency_s(0.99) / published_s[n] for n in TEXTCLS_ROWS}
    fifo = {n: textcls_run(n, FIFO).latency_s(0.99) / published_s[n] for n in (20, 40)}
    assert all(0.75 < unfair[n] < 1.1 for n in (20, 40))
    assert all(0.5 < unfair[n] < 2.0 for n in TEXTCLS_ROWS)
    assert all(fifo[n] < 0.3 for n in (20, 40))


def test_one_request_after_another_takes_the_mean_service_time():
    preset = load_preset("s001-a10")
    run = run_closed(preset, customers=1, workers=1, requests=50)
    assert set(run.latencies_ns) == {120_000_000}


def test_requests_beyond_the_workers_wait_for_one():
    preset = load_preset("s001-a10")
    run = run_closed(preset, customers=3, workers=1, requests=300)
    assert run.throughput_rps == pytest.approx(1 / 0.12, rel=1e-3)
    assert run.latency_s(0.99) == pytest.approx(3 * 0.12, rel=1e-3)
    assert run.latency_s(0.0) == pytest.approx(0.12, rel=1e-3)


def test_without_batches_the_a10_is_limited_by_the_host_work_of_its_calls():
    run = run_closed(load_preset("s001-a10"), customers=64, workers=64, requests=10_000)
    assert run.throughput_rps == pytest.approx(300, rel=0.01)
    assert run.busy_ratio[COMPUTE] == pytest.approx(0.30, rel=0.02)


def test_the_same_seed_gives_the_same_run():
    first, second, other = (
        run_closed(load_preset("s003-threads"), customers=4, workers=4, requests=100, seed=seed) for seed in (1, 1, 2)
    )
    assert first == second
    assert first.latencies_ns != other.latencies_ns


@pytest.mark.parametrize("level", [0, 1, 2])
def test_the_levels_tables_latency_lies_within_a_hundredth_of_the_table(level):
    preset = load_preset(f"s003-level{level}")
    (row,) = preset.table_rows
    run = run_closed(preset, customers=1, workers=1, requests=10)
    assert run.throughput_rps == pytest.approx(row.throughput_rps, rel=0.01)
    assert (row.kind == "predicted") == (level == 2)


def test_a_generation_takes_the_published_share_of_a_request_one_after_another():
    """1.2 of 3.5 s; and the published 30 % with 5 requests is what no concurrency at all gives."""
    run = run_closed(load_preset("llama2-7b-a100"), customers=5, workers=1, requests=20)
    assert run.throughput_rps == pytest.approx(1 / 3.5, rel=0.01)
    assert run.busy_ratio[COMPUTE] == pytest.approx(1.2 / 3.5, rel=0.01)


def test_a_batch_of_four_in_the_chain_gains_two_and_two_thirds_at_most():
    device = load_preset("s000-chain").device
    assert [device.compute_s(size) for size in (1, 4)] == pytest.approx([0.010, 0.015], rel=1e-3)
    assert 4 * device.compute_s(1) / device.compute_s(4) == pytest.approx(8 / 3, rel=1e-3)


def test_ten_threads_of_the_pool_can_not_serve_what_the_case_offers():
    preset = load_preset("s001-pool")
    assert run_closed(preset, customers=10, workers=10, requests=1_000).throughput_rps < 84
    assert run_closed(preset, customers=64, workers=64, requests=5_000).throughput_rps == pytest.approx(300, rel=0.01)
