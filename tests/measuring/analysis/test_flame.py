"""Does a recording become the tree that it was sampled from, and its list of top functions?"""

import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from perfkit.measuring.analysis.flame import TopFrame, flame_data, thread_labels, top_frames

FRAMES = [
    {"name": "serve", "file": "pool.py", "line": 3},
    {"name": "predict", "file": "model.py", "line": 7},
    {"name": "predict", "file": "model.py", "line": 9},
    {"name": "sleep", "file": "", "line": 0},
]


def stacks_of(samples, stacks, threads=("worker-0", "worker-1"), mode="default", frames=FRAMES):
    return {
        "schema": 1,
        "mode": mode,
        "rate_hz": 100,
        "seconds": 2.0,
        "sample_count": len(samples),
        "error_count": 1,
        "profiler_cpu_s": 0.1,
        "threads": [{"id": 10 + index, "name": name} for index, name in enumerate(threads)],
        "frames": frames,
        "stacks": stacks,
        "samples": {
            "time_ns": None,
            "thread": [thread for thread, _ in samples],
            "stack": [stack for _, stack in samples],
        },
    }


def test_samples_become_a_tree_whose_roots_are_threads_and_whose_lines_are_joined():
    recording = stacks_of([(0, 0), (0, 1), (0, 2), (1, 1)], stacks=[[0], [0, 1], [0, 2]])
    assert flame_data([recording], title="point 3", simulated=True) == {
        "schema": 1,
        "title": "point 3",
        "simulated": True,
        "names": ["worker-0", "worker-1", "serve (pool.py)", "predict (model.py)", "sleep"],
        "recordings": [
            {
                "mode": "default",
                "rate_hz": 100,
                "seconds": 2.0,
                "sample_count": 4,
                "error_count": 1,
                "threads": ["worker-0", "worker-1"],
                "parent": [-1, 0, 1, -1, 3, 4],
                "name": [0, 2, 3, 1, 2, 3],
                "self": [0, 1, 2, 0, 0, 1],
                "thread": [0, 0, 0, 1, 1, 1],
            }
        ],
    }


def test_recordings_of_several_modes_share_names_and_nothing_else():
    first = stacks_of([(0, 0)], stacks=[[0]], mode="default")
    second = stacks_of([(1, 0), (1, 0)], stacks=[[3]], mode="idle")
    data = flame_data([first, second], title="", simulated=False)
    assert [recording["mode"] for recording in data["recordings"]] == ["default", "idle"]
    assert [recording["self"] for recording in data["recordings"]] == [[0, 1], [0, 2]]
    assert len(data["names"]) == len(set(data["names"]))


def test_no_recording_and_an_empty_one_draw_nothing():
    assert flame_data([], title="t", simulated=False)["recordings"] == []
    empty = flame_data([stacks_of([], stacks=[])], title="t", simulated=False)["recordings"][0]
    assert (empty["parent"], empty["self"], empty["sample_count"]) == ([], [], 0)
    assert top_frames(stacks_of([], stacks=[]), 5) == []


def test_a_thread_without_frames_of_its_own_is_its_own_leaf():
    data = flame_data([stacks_of([(0, 0)], stacks=[[]])], title="t", simulated=False)
    assert data["recordings"][0]["self"] == [1]


def test_threads_that_share_a_name_or_have_none_show_their_id():
    threads = [{"id": 1, "name": "main"}, {"id": 2, "name": "pool"}, {"id": 3, "name": "pool"}, {"id": 4, "name": ""}]
    assert thread_labels(threads) == ["main", "pool (2)", "pool (3)", "thread (4)"]


def test_top_frames_rank_by_own_samples_and_count_a_recursive_function_once():
    recording = stacks_of([(0, 0), (0, 1), (0, 1), (1, 2)], stacks=[[0], [0, 1, 2], [3]])
    assert top_frames(recording, 2) == [
        TopFrame(name="predict (model.py)", self_count=2, total_count=2, self_ratio=0.5, total_ratio=0.5),
        TopFrame(name="serve (pool.py)", self_count=1, total_count=3, self_ratio=0.25, total_ratio=0.75),
    ]
    assert len(top_frames(recording, 99)) == 3


stack_lists = st.lists(st.lists(st.integers(0, 3), max_size=6), min_size=1, max_size=6)


@given(stack_lists, st.lists(st.tuples(st.integers(0, 1), st.integers(0, 5)), max_size=30))
def test_no_sample_is_lost_and_every_parent_comes_first(stacks, picks):
    samples = [(thread, stack % len(stacks)) for thread, stack in picks]
    data = flame_data([stacks_of(samples, stacks)], title="t", simulated=False)
    (tree,) = data["recordings"]
    assert sum(tree["self"]) == len(samples)
    assert all(parent < node for node, parent in enumerate(tree["parent"]))
    own_by_thread = Counter()
    for thread, own in zip(tree["thread"], tree["self"], strict=True):
        own_by_thread[thread] += own
    assert +own_by_thread == Counter(thread for thread, _ in samples)
    assert all(
        tree["thread"][parent] == tree["thread"][node] for node, parent in enumerate(tree["parent"]) if parent >= 0
    )


def test_twenty_thousand_nodes_cost_a_pass_over_them_and_not_more():
    chance = random.Random(7)
    frames = [{"name": f"f{index}", "file": f"m{index % 40}.py", "line": index} for index in range(3_000)]
    stacks = [[chance.randrange(3_000) for _ in range(40)] for _ in range(600)]
    samples = [(chance.randrange(2), chance.randrange(600)) for _ in range(60_000)]
    recording = stacks_of(samples, stacks, frames=frames)
    steps = 0

    def count_calls(frame, event, _):
        nonlocal steps
        steps += event == "call"

    sys.setprofile(count_calls)
    try:
        (tree,) = flame_data([recording], title="t", simulated=False)["recordings"]
    finally:
        sys.setprofile(None)
    assert len(tree["parent"]) > 20_000
    assert steps < 1.2 * len(tree["parent"]) + len(frames)


def test_the_module_imports_nothing_heavy():
    code = "import sys; import perfkit.measuring.analysis.flame; "
    code += "print(sorted({'numpy', 'pandas', 'scipy', 'torch'} & set(sys.modules)))"
    root = Path(__file__).parents[3]
    assert subprocess.check_output([sys.executable, "-c", code], cwd=root) == b"[]\n"
