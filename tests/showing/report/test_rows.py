"""Does every figure read with its interval, and does what is missing say so?"""

from perfkit.showing.report.badge import badge_of
from perfkit.showing.report.rows import Figure, Row, facts, row_of


def test_a_point_reads_as_a_row(points):
    point = points["workers"][3]
    point["errors"] = {"timed_out": 1200}
    assert row_of(point, "short", "workers") == Row(
        label="short",
        setting="8",
        requests="1,259",
        figures=(
            Figure(text="140 req/s", note="135 to 145"),
            Figure(text="109 ms", note="106 to 112 ms"),
            Figure(text="242 ms", note="228 to 262 ms"),
            Figure(text="331 ms", note="305 to 371 ms"),
            Figure(text="54.0 ms"),
            Figure(text="0 s"),
            Figure(text="100 %"),
            Figure(text="1.86"),
        ),
        grade="unsteady",
        reasons=("throughput of three windows: max/min 1.17, allowed 1.10",),
        errors="timed_out: 1,200",
        badge=badge_of(point),
    )


def test_queue_wait_is_the_wait_for_a_worker_before_and_after_preprocess(points):
    stages = points["workers"][0]["stages_s"]
    stages["preprocess_wait"], stages["queue_wait"] = 0.010, 0.005
    assert row_of(points["workers"][0], "", "workers").figures[4] == Figure(text="15.0 ms")
    stages["preprocess_wait"] = stages["queue_wait"] = None
    assert row_of(points["workers"][0], "", "workers").figures[4] == Figure(text="–")


def test_nested_facts_read_with_the_unit_of_their_name():
    values = {
        "a_bytes": 1536,
        "b": {"c_s": 0.002, "d_ratio": 0.5, "e": True},
        "f": None,
        "g": [1, 2],
        "h_rps": 3,
        "i": [],
    }
    assert list(facts(values)) == [
        ("a_bytes", "1.50 KiB"),
        ("b.c_s", "2.00 ms"),
        ("b.d_ratio", "50.0 %"),
        ("b.e", "yes"),
        ("f", "–"),
        ("g", "1, 2"),
        ("h_rps", "3.00 req/s"),
        ("i", "–"),
    ]
