"""What is read of each thread, and what when threads come and go?"""

import os
import threading
from pathlib import Path

from perfkit.measuring.collectors.series import Reading
from perfkit.measuring.collectors.threads import read_threads


def test_a_thread_has_its_given_name_or_else_the_kernels(plant):
    root = plant(
        {
            "proc/5/task/5/comm": "python\n",
            "proc/5/task/5/schedstat": "1500000000 20000000 7\n",
            "proc/5/task/6/comm": "python\n",
            "proc/5/task/6/schedstat": "1000000 0 2\n",
            "proc/5/task/6/status": "voluntary_ctxt_switches:\t3\nnonvoluntary_ctxt_switches:\t1\n",
        }
    )
    assert read_threads(root, 5, {6: "worker-0"}) == [
        Reading("thread:5:python", "cpu", "s", 1.5),
        Reading("thread:5:python", "runqueue", "s", 0.02),
        Reading("thread:5:python", "slices", "count", 7.0),
        Reading("thread:6:worker-0", "cpu", "s", 0.001),
        Reading("thread:6:worker-0", "runqueue", "s", 0.0),
        Reading("thread:6:worker-0", "slices", "count", 2.0),
        Reading("thread:6:worker-0", "voluntary_switches", "count", 3.0),
        Reading("thread:6:worker-0", "involuntary_switches", "count", 1.0),
    ]


def test_a_kernel_without_scheduler_statistics_gives_no_rows_and_no_zeros(plant):
    assert read_threads(plant({"proc/5/task/5/comm": "python\n"}), 5, {}) == []


def test_our_own_threads_are_all_there():
    is_over = threading.Event()
    thread = threading.Thread(target=is_over.wait)
    thread.start()
    try:
        sources = {reading.source for reading in read_threads(Path("/"), os.getpid(), {thread.native_id: "waiter"})}
    finally:
        is_over.set()
        thread.join()
    assert f"thread:{thread.native_id}:waiter" in sources
    assert any(source.startswith(f"thread:{threading.main_thread().native_id}:") for source in sources)
