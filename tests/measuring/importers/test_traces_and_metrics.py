"""Are traces read without counting nested time twice, and metrics without making up rates?"""

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfkit.measuring.importers.prometheus import interpolated
from perfkit.measuring.importers.spans import Spans


def span(name, at, length, tid=1, cat="cpu_op"):
    return {"ph": "X", "cat": cat, "name": name, "pid": 7, "tid": tid, "ts": at, "dur": length}


EVENTS = [
    {"ph": "M", "name": "thread_name", "pid": 7, "tid": 1, "args": {"name": "worker"}},
    span("request", 0, 1000),
    span("model", 100, 600),
    span("model", 200, 100),
    span("request", 0, 500, tid=2),
    span("profiler", 0, 2000, tid=9, cat="Trace"),
    {"ph": "i", "name": "[memory]", "pid": 7, "tid": 1, "ts": 5},
    {"ph": "B", "name": "load", "pid": 7, "tid": 3, "ts": 10},
    {"ph": "E", "pid": 7, "tid": 3, "ts": 30},
    {"ph": "E", "pid": 7, "tid": 3, "ts": 40},
    {"ph": "B", "name": "never", "pid": 7, "tid": 3, "ts": 50},
]


def weights(profile):
    return {weight.name: (round(1e6 * weight.own), round(1e6 * weight.total), weight.count) for weight in profile.top}


def written(events, indent=2):
    return json.dumps({"schemaVersion": 1, "traceEvents": events}, indent=indent)


@pytest.mark.parametrize(
    "text", [written(EVENTS), json.dumps(EVENTS), "\n" + written(EVENTS, None), gzip.compress(written(EVENTS).encode())]
)
def test_nested_spans_are_counted_once(reading, text):
    imported = reading(text)
    (profile,) = imported.profiles
    assert weights(profile) == {"request": (900, 1500, 2), "model": (600, 600, 2), "load": (20, 20, 1)}
    assert round(profile.total * 1e6) == 1520
    assert {name: round(1e6 * value) for name, value in profile.threads.items()} == {
        "worker (tid 1)": 1000,
        "tid 2": 500,
        "tid 3": 20,
    }
    assert (imported.rows.read, imported.rows.kept) == (11, 6)
    assert imported.rows.dropped["B or E without its pair"] == 2


def test_a_cut_trace_keeps_its_whole_events(reading):
    text = written([span(f"op{n}", 10 * n, 5) for n in range(100)])
    imported = reading(text[: len(text) // 2])
    assert 40 <= imported.rows.kept <= 50
    assert "the document is cut: whole events before the cut are kept" in imported.notes


def test_what_profilers_write_wrong_is_mended_and_told(reading):
    text = written([span("a", 0, 5), span("QUOTED", 10, 5), span("tab", 20, 5), span("c", 30, 77), span("d", 40, 5)])
    text = text.replace("QUOTED", 'post "quoted"').replace("tab", "t\tab").replace("77", "inf")
    imported = reading(text)
    assert {'post "quoted"', "t\tab", "a", "d"} <= {weight.name for weight in imported.profiles[0].top}
    assert imported.rows.dropped == {"event without a usable time": 1}
    assert any("2 events are not valid JSON as written" in note for note in imported.notes)


def test_an_event_beyond_mending_is_dropped_with_its_place(reading):
    text = written([span("a", 0, 5), span("b", 10, 12345), span("c", 20, 5)]).replace("12345", "{]")
    imported = reading(text)
    assert [weight.name for weight in imported.profiles[0].top] == ["a", "c"]
    assert imported.rows.dropped == {"event that is not valid JSON": 1}
    assert any(note.startswith("not valid JSON at character ") for note in imported.notes)


def test_a_trace_without_spans_says_nothing(reading):
    imported = reading(written(EVENTS[:1]))
    assert imported.rows.kept == 0
    assert "there is no event with a duration: it says nothing of where time went" in imported.notes


@given(st.recursive(st.just([]), lambda inside: st.lists(inside, max_size=3), max_leaves=25))
def test_own_times_add_up_to_the_time_on_top(tree):
    spans = Spans()

    def add(children, at):
        """A span of one microsecond of its own around its children; returns its end."""
        end = at + 1.0
        for child in children:
            end = add(child, end)
        spans.add(f"with {len(children)}", ("1", "1"), at, end - at)
        return end

    length = add(tree, 0.0)
    profile = spans.profile()
    assert profile.total * 1e6 == pytest.approx(length)
    assert sum(weight.own for weight in profile.top) == pytest.approx(profile.total)


METRICS = """# HELP app_seconds Time
# TYPE app_seconds histogram
app_seconds_bucket{le="0.01",path="/p"} 50.0 # {trace="x"} 0.005
app_seconds_bucket{le="0.1",path="/p"} 90.0
app_seconds_bucket{le="+Inf",path="/p"} 100.0
app_seconds_sum{path="/p"} 3.5
app_seconds_count{path="/p"} 100.0
app_seconds_created{path="/p"} 1.7e+09
# TYPE app_requests counter
app_requests_total{code="200"} 99.0
this is no sample
# EOF
"""


def test_a_histogram_becomes_a_level_with_percentiles_as_wide_as_its_buckets(reading):
    imported = reading(METRICS)
    (level,) = imported.levels
    assert (level.name, level.requests, level.mean_s) == ("app_seconds path=/p", 100, 0.035)
    assert level.throughput_rps is None
    assert level.percentiles_s == {0.5: pytest.approx(0.01), 0.9: pytest.approx(0.1)}
    assert imported.rows.dropped == {"creation time (_created)": 1, "line that is no sample": 1}
    assert imported.metrics[-1].kind == "counter"


def test_a_model_on_several_gpus_of_triton_is_one_level(reading):
    lines = [
        'nv_inference_request_success{gpu_uuid="G1",model="m",version="1"} 60.0',
        'nv_inference_request_success{gpu_uuid="G2",model="m",version="1"} 40.0',
        'nv_inference_request_failure{gpu_uuid="G1",model="m",version="1"} 5.0',
        'nv_inference_request_duration_us{gpu_uuid="G1",model="m",version="1"} 900000',
        'nv_inference_request_duration_us{gpu_uuid="G2",model="m",version="1"} 100000',
        'nv_inference_queue_duration_us{gpu_uuid="G1",model="m",version="1"} 2000',
        'nv_inference_count{gpu_uuid="G1",model="m",version="1"} 100',
        'nv_inference_exec_count{gpu_uuid="G1",model="m",version="1"} 25',
    ]
    imported = reading("\n".join(lines) + "\n")
    (level,) = imported.levels
    assert (level.name, level.requests, level.errors, level.mean_s) == ("m", 105, 5, 0.01)
    assert "m: average batch 4, mean queue time 20 us" in imported.notes


@given(st.lists(st.floats(0.001, 9), min_size=1, max_size=100), st.sampled_from([0.5, 0.9, 0.99]))
def test_an_interpolated_percentile_lies_in_the_bucket_of_the_true_one(values, p):
    ends = [0.01, 0.1, 1.0, 10.0, float("inf")]
    steps = [(end, float(sum(value <= end for value in values))) for end in ends]
    true = sorted(values)[max(0, -int(-p * len(values) // 1) - 1)]
    found = interpolated(steps, p)
    high = next(end for end in ends if true <= end)
    low = max([0.0, *(end for end in ends if end < true)])
    assert low <= found <= high


def test_a_sample_too_large_for_any_number_is_no_sample(reading):
    imported = reading("# TYPE x counter\nx_total " + "9" * 400 + "\ny_total 3\n")
    assert [(one.name, one.value) for one in imported.metrics] == [("y_total", 3.0)]
    assert imported.rows.dropped == {"line that is no sample": 1}
