"""Do py-spy's own files become the one stacks document, with no sample lost or made up?"""

import dataclasses

import pytest

from perfkit.measuring.collectors.stacks import (
    Circumstances,
    error_ratio,
    folded,
    from_chrometrace,
    from_speedscope,
    shorten_file,
)

MS_IN_US = 1_000
CIRCUMSTANCES = Circumstances(
    mode="idle",
    rate_hz=100,
    seconds=2.0,
    sample_count=9,
    error_count=4,
    profiler_cpu_s=0.03,
    attached_ns=5_000_000_000,
    stopped_ns=None,
    live_threads=frozenset({11, 12}),
)
FACTS = {
    "schema": 1,
    "mode": "idle",
    "rate_hz": 100,
    "seconds": 2.0,
    "profiler_sample_count": 9,
    "error_count": 4,
    "profiler_cpu_s": 0.03,
}


def change(phase, thread, at_ms, *names):
    """Events of one change, root first for B and leaf first for E, as py-spy writes them."""
    return [
        {"ph": phase, "tid": thread, "ts": at_ms * MS_IN_US, "name": name, "args": {"filename": "a.py", "line": 3}}
        for name in names
    ]


def counts(stacks):
    return {line.rpartition(" ")[0]: int(line.rpartition(" ")[2]) for line in folded(stacks)}


def test_speedscope_samples_are_kept_one_by_one_under_the_thread_of_their_root_frame():
    frames = [
        {"name": "thread (11): worker", "file": "", "line": 0},
        {"name": "serve", "file": "/srv/a.py", "line": 3},
        {"name": "wait", "file": "/srv/a.py", "line": 9},
        {"name": "thread (12)", "file": None, "line": None},
    ]
    profiles = [{"samples": [[0, 1], [0, 1, 2], [0, 1]]}, {"samples": [[3, 2]]}]
    stacks = from_speedscope({"shared": {"frames": frames}, "profiles": profiles}, CIRCUMSTANCES)
    assert stacks == {
        **FACTS,
        "sample_count": 4,
        "threads": [{"id": 11, "name": "worker"}, {"id": 12, "name": ""}],
        "frames": [{"name": "serve", "file": "a.py", "line": 3}, {"name": "wait", "file": "a.py", "line": 9}],
        "stacks": [[0], [0, 1], [1]],
        "samples": {"time_ns": None, "thread": [0, 0, 0, 1], "stack": [0, 1, 0, 2]},
    }
    assert folded(stacks) == [
        "thread (12);wait (a.py:9) 1",
        "worker (11);serve (a.py:3) 2",
        "worker (11);serve (a.py:3);wait (a.py:9) 1",
    ]


def test_a_recording_without_samples_is_a_document_without_samples():
    empty = {
        **FACTS,
        "sample_count": 0,
        "threads": [],
        "frames": [],
        "stacks": [],
        "samples": {"time_ns": [], "thread": [], "stack": []},
    }
    assert from_chrometrace([], CIRCUMSTANCES) == empty
    assert from_speedscope({"shared": {"frames": []}, "profiles": []}, CIRCUMSTANCES)["sample_count"] == 0
    assert folded(empty) == []


def test_changes_become_every_threads_state_on_a_grid_with_host_times():
    events = [
        *change("B", 1, 40, "thread (11): worker", "serve"),
        *change("B", 2, 40, "thread (12): main", "wait"),
        *change("E", 1, 65, "serve"),
        *change("B", 1, 65, "rest"),
        *change("E", 1, 80, "rest", "thread (11): worker"),
        *change("E", 2, 80, "wait", "thread (12): main"),
    ]
    stacks = from_chrometrace(events, CIRCUMSTANCES)
    assert counts(stacks) == {
        "worker (11);serve (a.py:3)": 3,
        "worker (11);rest (a.py:3)": 1,
        "main (12);wait (a.py:3)": 4,
    }
    first_ns = CIRCUMSTANCES.attached_ns
    assert stacks["samples"]["time_ns"] == [first_ns + tick * 10_000_000 for tick in (0, 0, 1, 1, 2, 2, 3, 3)]


def test_the_stop_gives_the_host_time_when_it_is_nearer_than_the_attach():
    events = [
        *change("B", 1, 40, "thread (11): worker", "serve"),
        *change("E", 1, 1040, "serve", "thread (11): worker"),
    ]
    later = dataclasses.replace(CIRCUMSTANCES, stopped_ns=CIRCUMSTANCES.attached_ns + 1_003_000_000)
    times = from_chrometrace(events, later)["samples"]["time_ns"]
    assert times[0] == CIRCUMSTANCES.attached_ns + 3_000_000


def test_a_thread_that_has_ended_is_not_seen_running_until_the_recording_ends():
    events = [
        *change("B", 1, 0, "thread (99): short", "serve"),
        *change("B", 2, 0, "thread (12): main", "wait"),
        *change("E", 1, 100, "serve", "thread (99): short"),
        *change("E", 2, 100, "wait", "thread (12): main"),
    ]
    assert counts(from_chrometrace(events, CIRCUMSTANCES)) == {
        "short (99);serve (a.py:3)": 1,
        "main (12);wait (a.py:3)": 10,
    }
    unknown = dataclasses.replace(CIRCUMSTANCES, live_threads=None)
    assert counts(from_chrometrace(events, unknown))["short (99);serve (a.py:3)"] == 10


def test_a_thread_id_that_a_later_thread_takes_over_ends_the_earlier_one():
    events = [
        *change("B", 1, 0, "thread (98): first", "serve"),
        *change("E", 1, 50, "serve", "thread (98): first"),
        *change("B", 1, 50, "thread (11): second", "serve"),
        *change("E", 1, 80, "serve", "thread (11): second"),
    ]
    assert counts(from_chrometrace(events, CIRCUMSTANCES)) == {
        "first (98);serve (a.py:3)": 1,
        "second (11);serve (a.py:3)": 3,
    }


def test_a_recording_without_thread_frames_is_refused():
    with pytest.raises(ValueError, match=r"root frame is 'serve'; py-spy --threads puts"):
        from_chrometrace([*change("B", 1, 0, "serve"), *change("E", 1, 50, "serve")], CIRCUMSTANCES)


def test_a_semicolon_in_a_name_cannot_break_a_folded_line():
    frames = [{"name": "thread (11): a;b\nc", "file": "", "line": 0}, {"name": "serve", "file": "", "line": 1}]
    stacks = from_speedscope({"shared": {"frames": frames}, "profiles": [{"samples": [[0, 1]]}]}, CIRCUMSTANCES)
    assert folded(stacks) == ["a,b c (11);serve (:1) 1"]


def test_failed_looks_are_counted_against_all_looks():
    assert error_ratio({"rate_hz": 100, "seconds": 2.0, "error_count": 4}) == 0.02
    assert error_ratio({"rate_hz": 100, "seconds": 0.0, "error_count": 0}) is None


def test_a_file_is_named_from_its_library_or_package_on(tmp_path):
    package = tmp_path / "service" / "inner"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").touch()
    assert shorten_file("/opt/venv/lib/python3.11/site-packages/torch/nn/functional.py") == "torch/nn/functional.py"
    assert shorten_file("/usr/lib/python3.11/threading.py") == "threading.py"
    assert shorten_file(str(package / "pool.py")) == "service/inner/pool.py"
    assert shorten_file("/home/somebody/run.py") == "run.py"
    assert shorten_file("<frozen importlib._bootstrap>") == "<frozen importlib._bootstrap>"
    assert shorten_file("") == ""
