"""Does the event loop keep the right to run at once, and do the threads that work for it go behind?"""

import os
import urllib.request

import psutil
import pytest

from perfkit.measuring.service import launch

two_cores = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")


@pytest.fixture(scope="module")
def service():
    """With one core, as a model that does not compute here leaves the others to the generator."""
    with launch(model="noop", elastic={"core": 1, "max": 1}) as launched:
        yield launched


def policies(service, name):
    """What the kernel says of the threads of that name."""
    threads = service.stats()["threads"]
    return [os.sched_getscheduler(int(tid)) for tid, each in threads.items() if each.startswith(name)]


def niceness(service, name):
    """Likewise the nice values, beyond this process's own."""
    own = os.getpriority(os.PRIO_PROCESS, 0)
    threads = service.stats()["threads"]
    return [os.getpriority(os.PRIO_PROCESS, int(tid)) - own for tid, each in threads.items() if each.startswith(name)]


def ask(service):
    """One request: a crew that comes and goes is there afterwards."""
    request = urllib.request.Request(service.predict_url, b'{"input": 1}', {"Content-Type": "application/json"})
    urllib.request.urlopen(request, timeout=20).read()


@two_cores
@pytest.mark.parametrize(
    ("crew", "placement"), [("pool", "inline"), ("pool", "threads"), ("asyncio", "inline"), ("elastic", "inline")]
)
def test_on_one_core_only_the_event_loop_pushes_others_aside_when_it_wakes(service, crew, placement):
    service.configure({"concurrency.model": crew, "preprocess.placement": placement})
    ask(service)
    assert policies(service, "MainThread") == [os.SCHED_OTHER]
    assert set(policies(service, "model-")) == {os.SCHED_BATCH}
    assert policies(service, "preprocess-") == [os.SCHED_BATCH] * (placement == "threads")


@two_cores
def test_with_more_cores_a_worker_takes_what_is_idle(models_on_path):
    with launch(model="wandering_models:Wanderer") as service:
        assert policies(service, "model-") == [os.SCHED_OTHER]


@two_cores
def test_workers_stand_as_far_behind_the_event_loop_as_is_set_and_only_they(models_on_path):
    with launch(model="wandering_models:Wanderer", pinning={"policy": "workers"}, worker_nice=7) as service:
        assert niceness(service, "model-") == [7]
        assert niceness(service, "MainThread") == [0]
        service.configure({"worker_nice": 0})
        assert niceness(service, "model-") == [0]


@two_cores
def test_a_worker_process_stands_behind_as_well(models_on_path):
    with launch(model="wandering_models:Wanderer", concurrency={"model": "processes"}, worker_nice=5) as service:
        children = psutil.Process(service.pid).children(recursive=True)
        assert 5 in {child.nice() for child in children}
