"""Is everything about one round recorded, whatever cannot be recorded said, and nothing left running?"""

import math
import os
import signal
from pathlib import Path

import pytest

from perfkit.clock import NS_PER_S, REAL_CLOCK
from perfkit.errors import CollectorUnavailable, ConfigError, TargetFailed
from perfkit.measuring.collectors.collector import Recording
from perfkit.measuring.load.loops import ClosedLoop, OpenLoop
from perfkit.measuring.phase import Plan, find_payloads, run_round
from perfkit.measuring.service import attach, launch
from perfkit.resources import data_path


class Recorder:
    """A collector that only notes when it is started and stopped."""

    name = "recorder"

    def __init__(self, log, missing=None):
        self._log = log
        self._missing = missing

    def start(self, target):
        self._log.append(("started", target.pid, sorted(set(target.thread_names.values()))[:1]))

    def stop(self):
        self._log.append("stopped")
        return Recording(name=self.name, series=[], files=(), notes=("a remark",), missing=self._missing)


class Barred:
    """A collector that cannot run here."""

    name = "barred"

    def start(self, target):
        raise CollectorUnavailable("it may not run here; ask the owner of the machine")


def plan(payloads, seconds=0.2, load=None, round_index=0):
    load = load or ClosedLoop(concurrency=2)
    return Plan(load=load, seconds=seconds, payloads=Path(payloads), round_index=round_index)


@pytest.mark.parametrize("seconds", [0, -1.0, math.nan, math.inf])
def test_a_time_that_nothing_can_be_measured_for_is_refused(payloads, seconds):
    with pytest.raises(ConfigError, match=f"^seconds is {seconds:g}; it takes a number above 0$"):
        plan(payloads, seconds)


@pytest.mark.parametrize(("seconds", "load_seconds"), [(0.3, 0.7), (4.0, 4.4), (10.0, 11.0)])
def test_load_lasts_longer_than_what_is_measured_so_that_a_warmup_fits_in(payloads, seconds, load_seconds):
    assert plan(payloads, seconds).load_seconds == pytest.approx(load_seconds)


def test_a_round_holds_all_there_is_from_before_until_after_its_load_and_names_what_could_not_be_recorded(
    server, payloads, tmp_path, log
):
    collectors = [Barred(), Recorder(log, missing="it ended early")]
    round_ = run_round(server, plan(payloads, round_index=3), collectors, tmp_path)
    phase, gauges, counters = round_.phase, round_.gauges, round_.counters[0]
    assert phase["index"] == 3
    assert {reading["round"] for reading in gauges} == {3}
    assert gauges[0]["time_ns"] <= phase["started_ns"] < phase["ended_ns"] <= gauges[-1]["time_ns"]
    accepted = counters["after"]["accepted"] - counters["before"]["accepted"]
    assert accepted == counters["after"]["ledger_rows"] == len(round_.requests) > 0
    assert counters["after"]["ledger_dropped"] == 0
    assert round_.requests["request_id"].min() == 300_000_001
    assert set(round_.requests["round"]) == set(round_.batches["round"]) == {3}
    assert (round_.generator_report["round"], round_.generator_report["scheduled"]) == (3, len(round_.requests))
    assert log == [("started", server.pid, log[0][2]), "stopped"]
    assert [recording.name for recording in round_.recordings] == ["recorder", "device"]
    own = {(row.source, row.name, row.unit) for row in round_.recordings[1].series}
    assert own == {("device:cpu", "allocated", "bytes")}
    assert round_.notes == [
        "barred: it may not run here; ask the owner of the machine",
        "recorder: it ended early",
        "recorder: a remark",
    ]


def test_a_watcher_sees_the_progress_and_may_end_the_load(server, payloads, tmp_path):
    seen = []

    def watch(progress):
        seen.append((progress.total_s, progress.stats["model"]))
        return True

    round_ = run_round(server, plan(payloads, seconds=60.0), [], tmp_path, watch)
    assert set(seen) == {(66.0, "noop")}
    assert round_.generator_report["was_stopped"] is True
    assert 0 < round_.phase["ended_ns"] - round_.phase["started_ns"] < 30 * NS_PER_S
    assert len(round_.requests) > 0


def test_a_service_that_is_killed_ends_the_round_with_its_last_words_and_the_collectors_stopped(
    payloads, tmp_path, log
):
    with launch(model="noop") as service:

        def kill(progress):
            os.kill(service.pid, signal.SIGKILL)

        with pytest.raises(TargetFailed, match=r"^the service ended with exit code -9 \(SIGKILL\); its last words: "):
            run_round(service, plan(payloads, seconds=60.0), [Recorder(log)], tmp_path, kill)
    assert log[-1] == "stopped"


def test_each_round_has_its_own_schedule_and_reads_its_own_rows_of_the_ledger(server, payloads, tmp_path):
    gaps = []
    for index in range(2):
        folder = tmp_path / str(index)
        folder.mkdir()
        round_ = run_round(server, plan(payloads, load=OpenLoop(rate_rps=100.0, seed=5), round_index=index), [], folder)
        requests = round_.requests
        first, last = requests["accepted_ns"].min(), requests["replied_ns"].max()
        assert round_.phase["started_ns"] <= first < last <= REAL_CLOCK.now_ns()
        gaps.append(requests["scheduled_ns"].sort_values().diff().dropna().to_list())
    assert gaps[0][:5] != gaps[1][:5]


def test_the_loads_own_file_comes_first_then_ours_then_the_models(server, payloads):
    assert find_payloads(server, ClosedLoop(payloads=payloads)) == Path(payloads)
    assert find_payloads(server, ClosedLoop(payloads="texts/short.jsonl")) == data_path("texts", "short.jsonl")
    assert find_payloads(server, ClosedLoop()) == data_path("numbers", "noop.jsonl")


@pytest.mark.parametrize("name", ["missing.jsonl", "/nowhere/missing.jsonl"])
def test_a_payload_file_that_is_not_there_is_the_users_error(server, name):
    with pytest.raises(ConfigError, match=f"^payloads is '{name}', which is no file; give a file of request bodies"):
        find_payloads(server, ClosedLoop(payloads=name))


def test_a_foreign_service_needs_a_payload_file(foreign):
    with pytest.raises(ConfigError, match=r"^no payloads are known .*; give a file of request bodies"):
        find_payloads(attach(foreign.url), ClosedLoop())


def test_a_server_that_is_started_again_meanwhile_voids_the_round_and_can_be_measured_afterwards(
    planted_models, payloads, tmp_path, monkeypatch
):
    loss = tmp_path / "loss"
    monkeypatch.setenv("PLANTED_LOSS", str(loss))
    with launch(model=f"{planted_models}:LosesDevice") as service:
        first = service.pid
        once = iter([loss.touch])
        with pytest.raises(TargetFailed):
            run_round(service, plan(payloads), [], tmp_path, lambda progress: next(once, lambda: None)())
        assert run_round(service, plan(payloads), [], tmp_path).counters
        assert service.stats()["process"] == {"pid": service.pid, "starts": 2, "load_s": pytest.approx(0, abs=20)}
        assert service.pid != first
