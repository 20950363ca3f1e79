"""Do profiles and dumps of other tools tell the same weights as they hold?"""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfkit.errors import ConfigError
from perfkit.measuring.importers.stacks import StackCounter

FOLDED = (
    "thread (11): MainThread;main (app.py:3);wait (threading.py:1) 30\n"
    "thread (12): worker;run (app.py:9);tokenize text (app.py:12) 50\n"
    "thread (12): worker;run (app.py:9) 20\n"
)


def weights(profile):
    return {weight.name: (weight.own, weight.total) for weight in profile.top}


@pytest.mark.parametrize(
    "encode",
    [str.encode, lambda text: text.encode("utf-16"), lambda text: text.replace("\n", "\r\n").encode()],
)
def test_collapsed_stacks_count_what_runs_and_what_called_it(reading, encode):
    imported = reading(encode(FOLDED + "some junk line\n"))
    (profile,) = imported.profiles
    assert (imported.format, imported.rows.kept, profile.total) == ("collapsed stacks", 3, 100)
    assert imported.rows.dropped == {"line without a count at its end": 1}
    assert profile.threads == {"thread (12): worker": 70, "thread (11): MainThread": 30}
    assert weights(profile)["tokenize text (app.py:12)"] == (50, 50)
    assert weights(profile)["run (app.py:9)"] == (20, 70)


def test_weights_that_are_periods_are_not_called_samples(reading):
    imported = reading("python;a 34482758\npython;a;b 68965516\n")
    assert any("an event's period" in note for note in imported.notes)


@given(st.lists(st.tuples(st.lists(st.sampled_from("abc"), min_size=1, max_size=6), st.integers(1, 9))))
def test_own_weights_add_up_and_recursion_counts_once(stacks):
    counter = StackCounter()
    for frames, weight in stacks:
        counter.add(frames, weight)
    profile = counter.profile("all", "samples")
    assert sum(weight.own for weight in profile.top) == profile.total == sum(weight for _, weight in stacks)
    for name in "abc":
        expected = sum(weight for frames, weight in stacks if name in frames)
        assert {weight.name: weight.total for weight in profile.top}.get(name, 0) == expected


PERF = """# captured on some day
python  8186  7393.531130:   34482758 cpu-clock:
\t          1aede8 _PyObject_Free+0x8 (/app/libpython3.11.so)
\t    7f9a647bea80 [unknown] ([unknown])

my server 8189/8190 [001]  7394.531130:   34482758 cpu-clock:
\t           fcc59 _PyEval_EvalFrameDefault+0x20e9 (/app/libpython3.11.so)
\t           fcc60 main (/app/libpython3.11.so)

"""


def test_perf_samples_are_read_leaf_first(reading):
    imported = reading(PERF)
    (profile,) = imported.profiles
    assert (profile.name, profile.unit, profile.samples, profile.total) == ("cpu-clock", "ns of CPU", 2, 2 * 34482758)
    assert weights(profile)["_PyEval_EvalFrameDefault"] == (34482758, 34482758)
    assert weights(profile)["main"] == (0, 34482758)
    assert set(profile.threads) == {"python 8186", "my server 8189"}
    assert "samples span 1.000 s" in imported.notes


def test_perf_samples_without_stacks_stand_on_one_line_and_events_stay_apart(reading):
    line = "          python  8694  7440.446895:   10101010 {}:      7f3d38961f0b kernel_0+0xa0b (/app/lib.so)\n"
    imported = reading(line.format("cpu-clock") + line.format("page-faults") + line.format("cpu-clock"))
    assert {profile.name: profile.samples for profile in imported.profiles} == {"cpu-clock": 2, "page-faults": 1}
    assert weights(imported.profiles[0]) == {"kernel_0": (20202020, 20202020), "python": (0, 20202020)}


def speedscope(*profiles):
    document = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "shared": {"frames": [{"name": "main"}, {"name": "work"}, {"name": "wait"}]},
        "profiles": list(profiles),
    }
    return json.dumps(document)


def sampled(name, unit, samples, weights):
    return {"type": "sampled", "name": name, "unit": unit, "samples": samples, "weights": weights}


def test_speedscope_threads_add_up_in_seconds(reading):
    imported = reading(
        speedscope(
            sampled("T1", "milliseconds", [[0, 1], [0, 1], []], [10, 10, 10]),
            sampled("T2", "seconds", [[0, 2], [9]], [0.5, 1.0]),
        )
    )
    (profile,) = imported.profiles
    assert (profile.unit, profile.samples) == ("s", 4)
    assert profile.threads == {"T2": 0.5, "T1": pytest.approx(0.03)}
    assert weights(profile)["work"] == (pytest.approx(0.02), pytest.approx(0.02))
    assert imported.rows.dropped == {"stack with a frame that the file does not name": 1}
    assert any("1 empty stacks" in note for note in imported.notes)


def test_speedscope_events_give_time_to_the_stack_that_is_open(reading):
    events = [("O", 0, 0), ("O", 1, 2), ("C", 1, 7), ("C", 0, 10), ("C", 2, 11)]
    profile = {
        "type": "evented",
        "name": "T",
        "unit": "none",
        "startValue": 0,
        "events": [{"type": kind, "frame": frame, "at": at} for kind, frame, at in events],
    }
    imported = reading(speedscope(profile))
    assert weights(imported.profiles[0]) == {"main": (5, 10), "work": (5, 5)}
    assert imported.rows.dropped == {"closing event without its opening": 1}


def test_a_cut_speedscope_file_is_refused(reading):
    text = speedscope(sampled("T1", "seconds", [[0]] * 50, [1] * 50))
    with pytest.raises(ConfigError, match="a speedscope file that is cut or broken"):
        reading(text[:-30])


DUMP = """Process 77: python app.py
Python v3.11.7 (/app/bin/python3.11)

Thread 77 (idle): "MainThread"
    select (selectors.py:415)
    main (app.py:63)
Thread 78 (active+gil): "worker-0"
    tokenize (app.py:12)
    run (threading.py:982)
Thread 79 (idle): "worker-1"
    handle (app.py:40)
Thread 80 (idle): "worker-2"
    handle (app.py:40)
"""


def test_a_dump_counts_states_and_threads_on_one_line(reading):
    imported = reading(DUMP)
    (profile,) = imported.profiles
    assert (imported.rows.kept, profile.states) == (4, {"idle": 3, "active+gil": 1})
    assert weights(profile)["handle"] == (2, 2)
    assert imported.notes == ("2 threads stand on one line, handle (app.py:40): do they wait for one lock?",)


def test_a_dump_in_json_says_who_holds_the_gil(reading):
    def thread(name, active, gil):
        frame = {"name": "work", "filename": "/app/a.py", "short_filename": "a.py", "line": 3}
        return {"thread_name": name, "active": active, "owns_gil": gil, "frames": [frame]}

    imported = reading(json.dumps([thread("a", True, True), thread("b", True, False), {"thread_name": "c"}]))
    assert imported.profiles[0].states == {"active+gil": 1, "active": 1}
    assert imported.rows.dropped == {"entry without frames": 1}
