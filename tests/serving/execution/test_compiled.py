"""Is everything compiled before several threads call, is it counted when not, and is a missing compiler named?"""

import sys
import threading

import pytest
import torch

from perfkit.errors import EnvironmentLacks
from perfkit.serving.execution.execution import Execution


def get_ready(execution, most_rows):
    """As the server does it, in a thread that is set up as a worker."""
    execution.get_ready(execution.shapes(most_rows, (4,)), torch.get_num_threads())


@pytest.mark.slow
def test_threads_that_start_at_once_compile_nothing(ready, network):
    """With a switch interval that makes threads meet inside of Dynamo's search."""
    execution = ready(network, "compile")
    before = execution.graphs
    barrier = threading.Barrier(4)
    arguments = [network.example(size, length) for size in (1, 2, 4) for length in (4, 8)]

    def work():
        with torch.inference_mode():
            own = [tuple(one.clone() for one in each) for each in arguments]
            barrier.wait()
            for _ in range(20):
                for each in own:
                    execution.run(each)

    threads = [threading.Thread(target=work) for _ in range(4)]
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval_s)
    assert execution.graphs == before


@pytest.mark.slow
def test_a_graph_that_is_compiled_later_is_counted(ready, network):
    execution = ready(network, "compile")
    before = execution.stats()
    torch.compile(lambda x: x + 1, backend="eager")(torch.zeros(2))
    after = execution.stats()
    assert after == before | {"graphs": before["graphs"] + 1}


@pytest.mark.slow
def test_more_rows_are_compiled_when_they_are_asked_for(network):
    execution = Execution(network, "compile", "float32")
    get_ready(execution, 1)
    first = execution.graphs_ready
    get_ready(execution, 2)
    assert execution.graphs_ready == first + 2  # two rows at two lengths


@pytest.mark.slow
def test_another_thread_limit_is_compiled_for_apart_and_both_stay_usable(network):
    execution = Execution(network, "compile", "float32")
    before = torch.get_num_threads()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            get_ready(execution, 1)
        ready = execution.graphs
        for threads in (1, 2, 1):
            torch.set_num_threads(threads)
            with torch.inference_mode():
                execution.run(network.example(1, 4))
    finally:
        torch.set_num_threads(before)
    assert execution.graphs == ready


@pytest.mark.parametrize("level", ["compile", "aoti"])
def test_without_a_compiler_the_error_says_what_to_install(network, level, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(EnvironmentLacks) as refusal:
        get_ready(Execution(network, level, "float32"), 1)
    assert str(refusal.value) == (
        "execution.level needs a C++ compiler, and no-such-compiler is not found; install one (apt-get install g++), "
        "name it in CXX, or set another level, such as inference_mode"
    )
