"""Do the server's settings survive TOML, and are contradictions refused?"""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfkit import fields
from perfkit.errors import ConfigError
from perfkit.settings.file import read_toml, to_toml
from perfkit.settings.guards import BreakerSettings, LimitSettings
from perfkit.settings.queueing import QUEUE_POLICIES, BatchSettings, LaneOrderSettings, LaneSettings, QueueSettings
from perfkit.settings.server import ServerSettings
from perfkit.settings.surroundings import HttpSettings, LedgerSettings, LogSettings
from perfkit.settings.workers import ConcurrencySettings, ElasticSettings, ResidentSettings, StageSettings

STAGES = st.builds(StageSettings, placement=st.sampled_from(["inline", "threads"]), threads=st.integers(1, 256))
SETTINGS = st.builds(
    ServerSettings,
    model=st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    workers=st.integers(1, 1024),
    seed=st.integers(0, 2**63),
    check_outputs=st.booleans(),
    preprocess=STAGES,
    postprocess=STAGES,
    batch=st.builds(BatchSettings, max_size=st.integers(1, 1024), max_delay_s=st.floats(0, 60)),
    queue=st.builds(
        QueueSettings,
        depth=st.none() | st.integers(1, 10**6),
        deadline_s=st.none() | st.floats(0.001, 3600),
        policy=st.sampled_from(QUEUE_POLICIES),
    ),
    lanes=st.dictionaries(
        st.text("aZ0_-", min_size=1, max_size=4),
        st.builds(
            LaneSettings,
            priority=st.integers(0, 1000),
            share=st.floats(0.001, 1000),
            depth=st.none() | st.integers(1, 10**6),
            workers=st.integers(0, 3),
        ),
        max_size=2,
    ),
    lane_order=st.builds(LaneOrderSettings, aging_s=st.none() | st.floats(0.001, 3600)),
    log=st.builds(LogSettings, slow_ratio=st.none() | st.floats(1.0, 1000.0)),
    limits=st.builds(
        LimitSettings,
        bucket_rps=st.none() | st.floats(0.001, 1e6),
        policy=st.sampled_from(["none", "fixed", "adaptive"]),
        target_s=st.floats(0.001, 60),
    ),
    breaker=st.builds(BreakerSettings, enabled=st.booleans(), failure_ratio=st.floats(0.001, 1)),
    elastic=st.builds(ElasticSettings, core=st.integers(0, 8), max=st.integers(8, 4096), keep_alive_s=st.floats(0, 60)),
    http=st.builds(HttpSettings, keep_alive_s=st.floats(0.1, 3600), server_timing=st.booleans()),
    ledger=st.builds(LedgerSettings, stamps=st.booleans(), capacity=st.integers(1024, 1 << 22)),
)


@given(SETTINGS)
def test_toml_brings_the_settings_back(settings):
    assert fields.from_nested(ServerSettings, tomllib.loads(to_toml(settings))) == settings


def test_the_defaults_are_those_of_a_server_without_batching():
    settings = ServerSettings()
    assert (settings.workers, settings.batch.max_size, settings.batch.max_delay_s) == (1, 1, 0.0)
    assert (settings.preprocess.placement, settings.queue.deadline_s) == ("inline", None)


def test_every_field_has_a_line_of_documentation():
    undocumented = [name for name, _, facts in fields.leaves(ServerSettings) if len(facts["doc"]) < 10]
    assert undocumented == []


def test_what_belongs_to_the_process_needs_a_restart():
    needs_restart = [name for name, _, facts in fields.leaves(ServerSettings) if not facts["live"]]
    of_cuda = ["cuda.memory_cap_ratio", "cuda.connections", "cuda.wait"]
    of_execution = ["execution.level", "execution.dtype"]
    of_ledger = ["ledger.stamps", "ledger.capacity"]
    assert needs_restart == ["model", "device", "seed", *of_execution, *of_ledger, *of_cuda]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"batch": BatchSettings(max_size=4)}, "batch.max_size is 4 with topology = carry; carry takes 1"),
        ({"preprocess": StageSettings(placement="threads")}, "placement is threads with topology = carry"),
        ({"postprocess": StageSettings(placement="threads")}, "placement is threads with topology = carry"),
    ],
)
def test_one_worker_that_carries_a_request_through_neither_batches_nor_hands_over(values, message):
    with pytest.raises(ConfigError, match=f"^{message}"):
        ServerSettings(topology="carry", **values)


def test_a_breaker_must_be_able_to_remember_as_many_as_it_waits_for():
    with pytest.raises(ConfigError, match=r"^breaker.least is 10 and breaker.window 5; so many are never remembered"):
        BreakerSettings(window=5)


@pytest.mark.parametrize(
    ("model", "values", "message"),
    [
        ("serial", {"workers": 2}, "workers is 2 with concurrency.model = serial; serial is one thread"),
        (
            "processes",
            {"replicas": 2, "resident": ResidentSettings(models=1)},
            "resident.models is 1 with concurrency.model = processes, whose processes each have weights of their own",
        ),
        ("serial", {"replicas": 2}, "replicas is 2 with concurrency.model = serial; serial is one thread"),
        ("serial", {"lanes": {"fast": LaneSettings(workers=1)}}, "lane fast has workers of its own with concurrency.m"),
        ("serial", {"batch": BatchSettings(max_size=4)}, "batch.max_size is 4 with concurrency.model = serial; its"),
        ("thread_per_request", {"batch": BatchSettings(max_size=2)}, "batch.max_size is 2 with concurrency.model = th"),
        ("serial", {"preprocess": StageSettings(placement="threads")}, "preprocess.placement is threads with concurr"),
        ("thread_per_request", {"postprocess": StageSettings(placement="threads")}, "postprocess.placement is threads"),
        ("elastic", {"preprocess": StageSettings(placement="threads")}, "preprocess.placement is threads with concur"),
    ],
)
def test_what_a_concurrency_model_cannot_do_is_refused_with_what_to_do(model, values, message):
    with pytest.raises(ConfigError, match=f"^{message}") as refusal:
        ServerSettings(concurrency=ConcurrencySettings(model=model), **values)
    assert "(set " in str(refusal.value)


def test_an_elastic_pool_cannot_have_a_core_beyond_its_maximum():
    with pytest.raises(ConfigError, match=r"^elastic.max is 8 with elastic.core = 9; give core or more$"):
        ElasticSettings(core=9)


def test_a_settings_file_that_cannot_be_read_is_named_with_the_reason(tmp_path):
    missing, broken, binary = tmp_path / "no.toml", tmp_path / "broken.toml", tmp_path / "binary.toml"
    broken.write_text("workers = ")
    binary.write_bytes(b"\xff\xfe")
    messages = []
    for path in (missing, broken, binary):
        with pytest.raises(ConfigError) as refusal:
            read_toml(path)
        messages.append(str(refusal.value).replace(str(path), "FILE")[:50])
    assert messages[0] == "cannot read settings file FILE: No such file or di"
    assert messages[1:] == [
        message[:50] for message in messages[1:] if message.startswith("settings file FILE is not TOML")
    ]


def test_a_settings_file_holds_what_differs_from_the_defaults(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('model = "noop"\nworkers = 2\n[batch]\nmax_size = 8\n')
    assert fields.from_nested(ServerSettings, read_toml(path)) == ServerSettings(
        model="noop", workers=2, batch=BatchSettings(max_size=8)
    )


def test_a_settings_file_can_take_the_bound_of_the_queue_away():
    unbounded = ServerSettings(queue=QueueSettings(depth=None))
    assert 'depth = "none"' in to_toml(unbounded)
    assert fields.replace(ServerSettings(), {"queue.depth": "none"}) == unbounded


def test_a_settings_file_names_lanes_as_tables():
    text = "[lanes.online]\npriority = 0\ndeadline_s = 0.5\n[lanes.plain]\n"
    settings = fields.replace(ServerSettings(), fields.flatten(tomllib.loads(text)))
    assert settings.lanes == {"online": LaneSettings(priority=0, deadline_s=0.5), "plain": LaneSettings()}
    assert "\n[lanes.online]\npriority = 0\n" in to_toml(settings)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"policy": "adaptive"}, "batch.policy is adaptive with batch.max_size = 1"),
        ({"policy": "adaptive", "max_size": 8, "max_delay_s": 0.01}, "batch.max_delay_s is 0.01 with batch.policy"),
        ({"buckets": "16,32"}, "batch.buckets is '16,32'; it takes whole numbers such as 16/32/64"),
        ({"buckets": "32/16"}, "batch.buckets is '32/16'; the lengths must ascend"),
        ({"buckets": "0/16"}, "batch.buckets is '0/16'; the lengths must ascend, from 1 or more"),
        ({"buckets": ""}, "batch.buckets is ''; it takes whole numbers"),
    ],
)
def test_batching_that_cannot_be_is_refused(values, message):
    with pytest.raises(ConfigError) as refusal:
        BatchSettings(**values)
    assert str(refusal.value)[: len(message)] == message
