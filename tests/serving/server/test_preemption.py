"""Does the event loop keep the right to run at once, and do the threads that work for it go behind?"""

import os
import urllib.request

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
