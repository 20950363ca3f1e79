"""What do shared flags turn into?"""

import argparse

import pytest

from perfkit.errors import ConfigError
from perfkit.measuring.load.loops import ClosedLoop, OpenLoop
from perfkit.measuring.scanning.plan import Axis
from perfkit.showing.cli import options as flags


def parsed(*words):
    parser = argparse.ArgumentParser()
    flags.add_model(parser)
    flags.add_load(parser)
    flags.add_seconds(parser, 10.0, "time")
    return parser.parse_args(words)


@pytest.mark.parametrize(
    ("words", "load"),
    [
        ((), ClosedLoop(concurrency=8)),
        (("--concurrency", "3", "--seed", "4"), ClosedLoop(concurrency=3, seed=4)),
        (("--rate", "20", "--payloads", "x.jsonl"), OpenLoop(rate_rps=20.0, payloads="x.jsonl")),
    ],
)
def test_flags_make_a_load(words, load):
    assert flags.read_load(parsed(*words)) == load


def test_set_reaches_server_and_load():
    options = parsed("--model", "noop", "--set", "workers=3", "--set", "think_time_s=0.5", "--set", "load.seed=2")
    settings, load = flags.read_settings(options, flags.read_load(options))
    assert (settings.model, settings.workers) == ("noop", 3)
    assert load == ClosedLoop(concurrency=8, think_time_s=0.5, seed=2)


def test_the_model_is_minilm_unless_something_says_otherwise(tmp_path):
    (tmp_path / "server.toml").write_text('model = "mlp"\n')
    file = ("--settings", str(tmp_path / "server.toml"))
    models = [
        flags.read_settings(parsed(*words), ClosedLoop())[0].model
        for words in ((), file, (*file, "--model", "noop"), (*file, "--model", "noop", "--set", "model=resnet"))
    ]
    assert models == ["minilm", "mlp", "noop", "resnet"]


def test_a_value_may_hold_an_equals_sign_and_spaces_around_it_do_not_count():
    assert flags.read_pairs(["payloads = a=b.jsonl"], "--set") == {"payloads": "a=b.jsonl"}


def test_axes_are_read_by_their_fields_types_and_keep_the_users_names():
    axes = flags.read_axes(["max_size=1, 2", "load.keep_alive=yes,no"], ClosedLoop())
    assert axes == {
        "max_size": Axis(name="server.batch.max_size", values=(1, 2)),
        "load.keep_alive": Axis(name="load.keep_alive", values=(True, False)),
    }


@pytest.mark.parametrize("text", ["workers", "=2", ""])
def test_what_is_no_pair_is_refused(text):
    with pytest.raises(ConfigError, match="is not NAME=VALUE; write for example --vary workers=4"):
        flags.read_axes([text], ClosedLoop())


def test_seconds_are_a_number_above_zero():
    assert parsed("--seconds", "0.5").seconds == 0.5
    assert parsed().seconds == 10.0
