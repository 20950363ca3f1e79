"""Do the real threads run where the setting says, and where the process started once it says nothing any more?"""

from __future__ import annotations

import os

import psutil
import pytest

from perfkit import fields
from perfkit.errors import ConfigError
from perfkit.measuring.service import launch
from perfkit.serving.scheduling.pinning import Cpu
from perfkit.serving.server.pins import Cores, decide, read_cpu
from perfkit.settings.server import ServerSettings

MINE = sorted(os.sched_getaffinity(0))
two_cores = pytest.mark.skipif(len(MINE) < 2, reason="needs two cores")


@pytest.fixture(scope="module")
def pinned_server(models_on_path):
    """Not a light model, so that the server has all cores."""
    with launch(model="wandering_models:Wanderer") as service:
        yield service


@pytest.fixture
def pinned(pinned_server):
    yield pinned_server
    pinned_server.configure(
        {"pinning.policy": "none", "workers": 1, "concurrency.model": "pool", "preprocess.placement": "inline"}
    )


def masks(service, name):
    """What the kernel says of the threads of that name, and of the first thread."""
    threads = service.stats()["threads"]
    return [sorted(os.sched_getaffinity(int(tid))) for tid, each in threads.items() if each.startswith(name)]


@two_cores
def test_one_worker_has_a_core_and_the_event_loop_the_others(pinned):
    pinned.configure({"pinning.policy": "workers"})
    (worker,), (loop,) = masks(pinned, "model-0"), masks(pinned, "MainThread")
    assert len(worker) == 1
    assert not set(worker) & set(loop)
    stats = pinned.stats()
    assert (stats["device"]["effective_cpus"], stats["cores"]["background"]) == ([worker], loop)


@two_cores
def test_pools_and_their_processes_run_in_the_background_and_model_processes_on_their_workers_cores(pinned):
    pinned.configure({"pinning.policy": "workers", "preprocess.placement": "processes"})
    (loop,) = masks(pinned, "MainThread")
    (child,) = psutil.Process(pinned.pid).children()
    assert sorted(os.sched_getaffinity(child.pid)) == loop
    assert pinned.stats()["processes"][0]["cpus"] == loop
    pinned.configure({"concurrency.model": "processes", "preprocess.placement": "inline"})
    (child,) = psutil.Process(pinned.pid).children()
    stats = pinned.stats()
    assert stats["device"]["effective_cpus"] == [sorted(os.sched_getaffinity(child.pid))]
    assert not set(stats["device"]["effective_cpus"][0]) & set(masks(pinned, "MainThread")[0])


@two_cores
def test_with_the_policy_off_again_every_thread_has_all_cores(pinned):
    before = masks(pinned, "")
    pinned.configure({"pinning.policy": "workers", "workers": 2})
    pinned.configure({"pinning.policy": "none", "workers": 2})
    assert before[0] == MINE
    assert masks(pinned, "model-") == [MINE, MINE]
    assert masks(pinned, "MainThread") == [MINE]


def test_replicas_get_their_parts_one_after_the_other():
    cores = Cores()
    cores.cpus = [Cpu(number=number, package=0, core=number) for number in range(8)]
    cores.usable = 8
    settings = fields.replace(ServerSettings(model="noop"), {"replicas": 2, "pinning.policy": "workers"})
    names = ["model-0", "model-1"]
    found = [decide(settings, cores, names, replica) for replica in (0, 1)]
    assert [[pins.worker(name) for name in names] for pins in found] == [[(0,), (1,)], [(2,), (3,)]]
    assert [pins.background for pins in found] == [(4, 5, 6, 7)] * 2


def test_as_long_as_nothing_was_pinned_no_thread_is_touched():
    pins = decide(ServerSettings(model="noop"), Cores(), ["model-0"], 0)
    assert (pins.worker("model-0"), pins.background) == (None, None)


def test_a_processor_of_which_the_kernel_tells_nothing_counts_as_a_core_of_its_own(tmp_path):
    assert read_cpu(5, tmp_path) == Cpu(number=5, package=0, core=5)
    folder = tmp_path / "sys/devices/system/cpu/cpu5/topology"
    folder.mkdir(parents=True)
    (folder / "physical_package_id").write_text("1\n")
    (folder / "core_id").write_text("2\n")
    assert read_cpu(5, tmp_path) == Cpu(number=5, package=1, core=2)


@pytest.mark.parametrize("model", ["thread_per_request", "elastic"])
def test_threads_that_come_and_go_are_not_pinned(model):
    with pytest.raises(ConfigError, match=f"pinning.policy is workers with concurrency.model = {model}"):
        fields.replace(ServerSettings(model="noop"), {"pinning.policy": "workers", "concurrency.model": model})
