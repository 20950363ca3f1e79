"""Do the named profiles reach a running service, and is each told as what it is?"""

import pytest

QUICK = ("--seconds", "0.4")


def pointed(ended):
    """The document, whose grade a busy machine may have made void."""
    assert (ended.code, ended.err) == (3 if ended.document["grade"] == "void" else 0, "")
    return ended.document


def test_a_staircase_has_a_point_for_each_step_and_no_p99_of_its_own(perfkit, noop_server, bodies):
    words = ("load", noop_server.url, "--payloads", bodies, "--profile", "staircase", "--set", "levels=1/2")
    document = pointed(perfkit(*words, *QUICK, "--json"))
    assert document["grade"] in ("unsteady", "void")
    assert document["latency_s"]["p99"]["value"] is None
    assert [(step["from_level"], step["to_level"]) for step in document["steps"]] == [(1, 1), (2, 2)]
    if document["grade"] == "unsteady":
        assert document["reasons"][0].startswith("the load changed on purpose (staircase: 1, 2 users)")
        assert [step["varied"] for step in document["steps"]] == [{"concurrency": 1}, {"concurrency": 2}]


def test_a_staircase_is_told_as_a_table_of_its_steps(perfkit, noop_server, bodies):
    words = ("load", noop_server.url, "--payloads", bodies, "--profile", "staircase", "--set", "levels=1/2")
    out = perfkit(*words, *QUICK).out
    assert out.startswith("closed loop, staircase · ")
    assert "each step at one level by itself" in out or "void" in out


def test_bursts_are_told_with_their_index_of_dispersion(perfkit, noop_server, bodies):
    words = ("load", noop_server.url, "--payloads", bodies, "--profile", "bursty", "--rate", "80", *QUICK)
    ended = perfkit(*words, "--set", "bursts.burst_s=0.1", "--set", "bursts.quiet_s=0.1")
    assert (
        "bursty arrivals: 133 req/s in bursts of 100 ms, 26.7 req/s for 100 ms between; index of dispersion"
        in ended.out
    )


def test_several_generators_are_told_one_by_one(perfkit, noop_server, bodies):
    words = ("load", noop_server.url, "--payloads", bodies, "--rate", "100", "--generators", "2", *QUICK)
    ended = perfkit(*words)
    assert "generator 1 of 2: " in ended.out
    assert "generator 2 of 2: " in ended.out


def test_a_replay_sends_what_its_file_says(perfkit, noop_server, bodies, tmp_path):
    (tmp_path / "schedule.csv").write_text("at\n" + "".join(f"{number * 20}\n" for number in range(20)))
    words = ("load", noop_server.url, "--payloads", bodies, "--profile", "replay", "--json")
    ended = perfkit(*words, "--set", f"replay.file={tmp_path / 'schedule.csv'}", "--set", "replay.unit=ms")
    document = pointed(ended)
    assert document["load"]["arrivals"] == "replay"
    assert document["requests"] <= 20


def test_a_smoke_test_in_which_a_request_fails_says_no(perfkit, noop_server, bodies):
    ended = perfkit(
        *("load", f"{noop_server.url}/wrong/path", "--payloads", bodies, "--profile", "smoke", *QUICK, "--json")
    )
    assert (ended.code, list(ended.document["errors"])) == (1, ["http_404"])


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--profile", "slope"), "invalid choice: 'slope'"),
        (("--profile", "bursty"), "bursty is an open loop and needs its rate; give --rate RPS"),
        (("--profile", "soak"), "a soak needs the load that was stable before"),
        (("--profile", "soak", "--stable", "many"), "stable is 'many'; it takes users (20)"),
        (("--stable", "20"), "--stable is for --profile soak"),
        (("--profile", "smoke", "--rate", "5"), "a smoke test is one user in a closed loop"),
        (("--profile", "replay"), "a replay needs a schedule file"),
        (("--profile", "ramp", "--until", "p99:5%"), "--until asks for one level, and the ramp has several"),
        (("--concurrency", "2", "--generators", "3"), "generators is 3 with 2 users"),
        (("--set", "load.mix.a.weight=2"), "payload set a has no file"),
        (("--rate", "5", "--audit-repeats"), "repeats are audited in a closed loop at one level"),
    ],
)
def test_what_does_not_go_together_is_refused_in_one_line(perfkit, noop_server, words, complaint):
    ended = perfkit("load", noop_server.url, *words)
    assert ended.code == 2
    assert complaint in ended.line
