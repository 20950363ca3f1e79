"""How does the server process start, refuse to start, drain and end?"""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from perfkit import children, fields, launch
from perfkit.errors import ConfigError, EnvironmentLacks, PerfkitError, TargetFailed
from perfkit.serving.server.listener import check_exposure
from perfkit.settings.server import ServerSettings

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def start(models_on_path):
    """Starts server processes as a foreign parent would; ends them after the test."""
    processes = []

    def run(model="noop", *, changes=None, **spec):
        settings = fields.replace(ServerSettings(model=model), changes or {})
        spec = {"settings": fields.to_nested(settings)} | spec
        command = [sys.executable, "-m", "perfkit.serving.server.process", json.dumps(spec)]
        processes.append(subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return processes[-1]

    yield run
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()


def ready(process):
    line = process.stdout.readline()
    assert line, process.stderr.read()
    return json.loads(line)


def call(url, path, document=None, headers=None):
    """Status and JSON of one request."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=20)
    body = None if document is None else json.dumps(document)
    connection.request("GET" if body is None else "POST", path, body, headers or {})
    answer = connection.getresponse()
    found = answer.status, json.loads(answer.read())
    connection.close()
    return found


def test_the_ready_line_tells_where_the_server_is(start):
    process = start()
    line = ready(process)
    assert (sorted(line), line["pid"]) == (["control_url", "pid", "url"], process.pid)
    assert call(line["url"], "/health/ready") == (200, {"ready": True})
    assert call(line["control_url"], "/settings")[1]["model"] == "noop"
    assert call(line["url"], "/settings")[0] == 404, "the control port is apart"


def failure(process):
    """Exit code and the only line on stderr."""
    out, err = process.communicate(timeout=60)
    lines = err.strip().splitlines()
    assert (out, len(lines)) == ("", 1), err
    return process.returncode, lines[0].removeprefix("perfkit: ")


@pytest.mark.parametrize(
    ("model", "code", "text"),
    [
        ("rumour", 2, "unknown model 'rumour'; known: "),
        ("lab_models:FailsInLoad", 4, "model lab_models:FailsInLoad cannot load: RuntimeError: no weights anywhere"),
        ("lab_models:FailsInWarmUp", 4, "a model worker cannot start: AttributeError: 'int' object has no attribute"),
    ],
)
def test_a_model_that_cannot_be_served_ends_the_process_with_one_line(start, model, code, text):
    returncode, line = failure(start(model))
    assert (returncode, line[: len(text)]) == (code, text)


def test_a_port_in_use_ends_the_process_with_one_line(start):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert failure(start(port=port)) == (
            3,
            f"port {port} on 127.0.0.1 is in use; choose another, or 0 for any free one",
        )
    assert failure(start(port=70_000)) == (2, "port is 70000; it takes 0 (any free one) to 65535")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org", ""])
def test_beyond_loopback_a_token_is_needed(host):
    with pytest.raises(ConfigError, match="no token is set"):
        check_exposure(host, None)
    with pytest.raises(ConfigError, match="no token is set"):
        check_exposure(host, "")
    check_exposure(host, "secret")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_on_loopback_no_token_is_needed(host):
    check_exposure(host, None)


def test_beyond_loopback_without_a_token_the_process_does_not_start(start):
    returncode, line = failure(start(host="0.0.0.0"))
    assert (returncode, "token" in line) == (2, True)


def test_with_a_token_only_those_who_know_it_are_answered(start):
    url = ready(start(token="s3cret"))["url"]
    statuses = [
        call(url, path, headers=headers)[0]
        for path in ("/stats", "/nowhere")
        for headers in (
            {},
            {"Authorization": "Bearer wrong"},
            {"Authorization": "Bearer s3cret", "Host": "any.example"},
        )
    ]
    assert statuses == [401, 401, 200, 401, 401, 404]


def test_a_users_class_with_nothing_but_predict_is_served(start):
    url = ready(start("lab_models:OnlyPredict"))["url"]
    assert call(url, "/predict", {"input": "abc"})[1]["output"] == "ABC"


@pytest.mark.parametrize(
    "changes",
    [
        {"workers": 2},
        {"workers": 2, "batch.max_size": 4, "batch.max_delay_s": 10.0},
        {"workers": 2, "preprocess.placement": "threads", "postprocess.placement": "threads"},
    ],
    ids=["plain", "window", "pools"],
)
def test_a_signal_drains_every_accepted_request(start, dial_to, changes, eventually):
    process = start("lab_models:Probe", changes=changes)
    line = ready(process)
    wires = [dial_to(line["url"]) for _ in range(50)]
    for wire in wires:
        wire.post({"input": {"sleep_s": 0.01}})
    idle = dial_to(line["url"])
    eventually(lambda: call(line["control_url"], "/stats")[1]["counters"]["accepted"] == 50)
    process.send_signal(signal.SIGTERM)
    assert [wire.answer().status for wire in wires] == [200] * 50
    assert process.wait(20) == 0
    assert idle.is_at_end()
    with pytest.raises(ConnectionRefusedError):
        dial_to(line["url"])


def test_a_large_answer_reaches_a_client_that_reads_it_late(start, dial_to, eventually):
    process = start("lab_models:Probe", changes={"http.max_body_bytes": 1 << 25})
    line = ready(process)
    wire = dial_to(line["url"])
    text = "x" * 24_000_000  # more than the sockets' buffers hold
    wire.post({"input": text})
    eventually(lambda: call(line["control_url"], "/stats")[1]["counters"]["ok"] == 1)
    process.send_signal(signal.SIGTERM)
    answer = wire.answer()
    assert (answer.status, answer.json["output"]["echo"] == text, process.wait(20)) == (200, True, 0)


def test_while_draining_new_connections_are_refused_and_open_ones_told_to_go(start, dial_to, gate, eventually):
    process = start("lab_models:Probe")
    line = ready(process)
    holder, other = dial_to(line["url"]), dial_to(line["url"])
    other.get("/health/ready")
    assert other.answer().status == 200
    holder.post({"input": gate.payload})
    eventually(lambda: call(line["control_url"], "/stats")[1]["gauge"]["in_flight"] == 1)
    process.send_signal(signal.SIGTERM)
    eventually(lambda: call(line["control_url"], "/stats")[1]["is_ready"] is False)
    other.post({"input": 1})
    told = other.answer()
    assert (told.code, told.headers["connection"], "retry-after" in told.headers) == ((503, "draining"), "close", True)
    with pytest.raises(ConnectionRefusedError):
        dial_to(line["url"])
    gate.open()
    assert holder.answer().status == 200
    assert process.wait(20) == 0


def test_a_drain_that_takes_too_long_is_given_up(start, dial_to, gate, eventually):
    process = start("lab_models:Probe", changes={"http.drain_s": 0.1})
    line = ready(process)
    wire = dial_to(line["url"])
    wire.post({"input": gate.payload})
    eventually(lambda: call(line["control_url"], "/stats")[1]["gauge"]["in_flight"] == 1)
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 1
    assert "not drained within 0.1 s" in process.stderr.read()


@pytest.mark.parametrize("how", ["SIGINT", "shutdown"])
def test_an_interrupt_and_the_control_port_end_it_the_same_way(start, how):
    process = start()
    line = ready(process)
    if how == "SIGINT":
        process.send_signal(signal.SIGINT)
    else:
        assert call(line["control_url"], "/shutdown", {}) == (200, {"shutting_down": True})
    assert process.wait(20) == 0
    assert process.stderr.read() == ""


@pytest.mark.parametrize(
    ("model", "kind", "text"),
    [
        ("rumour", ConfigError, "unknown model 'rumour'"),
        ("lab_models:FailsInLoad", TargetFailed, "cannot load: RuntimeError: no weights"),
    ],
)
def test_launching_what_cannot_start_raises_the_line_that_the_process_ended_with(models_on_path, model, kind, text):
    with pytest.raises(kind, match=text) as failure:
        launch(model=model)
    assert isinstance(failure.value, PerfkitError)


def test_a_launched_server_ends_with_its_block_and_with_nothing_left_behind():
    with launch(model="noop") as service:
        process = psutil.Process(service.pid)
        assert process.children() == []
        assert service.stats()["is_ready"] is True
    assert has_ended(process)


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM])
def test_a_launched_server_ends_when_its_launcher_is_killed(ending, eventually):
    code = "import perfkit, threading; s = perfkit.launch(model='noop'); print(s.pid, flush=True)"
    command = [sys.executable, "-c", f"{code}; threading.Event().wait()"]
    parent = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
    server = psutil.Process(int(parent.stdout.readline()))
    try:
        os.kill(parent.pid, ending)
        parent.wait(20)
        eventually(lambda: has_ended(server))
    finally:
        if not has_ended(server):
            server.kill()


def has_ended(process):
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.mark.parametrize(
    ("code", "kind"), [(2, ConfigError), (3, EnvironmentLacks), (4, TargetFailed), (1, TargetFailed)]
)
def test_a_failed_start_raises_the_kind_of_error_that_the_exit_code_tells(monkeypatch, code, kind):
    script = f"import sys; print('perfkit: because', file=sys.stderr); sys.exit({code})"
    spawn = children.spawn
    monkeypatch.setattr(children, "spawn", lambda _, **popen: spawn([sys.executable, "-c", script], **popen))
    with pytest.raises(kind, match=r"^because$"):
        launch(model="noop")
