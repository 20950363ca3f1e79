"""Is a server whose device is lost there again on the same sockets, and is any other end passed on?"""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from perfkit.measuring.control import Endpoint
from perfkit.serving.server.spec import ServerSpec, write_spec
from perfkit.settings.server import ServerSettings

ROOT = Path(__file__).resolve().parents[3]
PATIENCE_S = 30


class Supervised:
    """A supervisor, as a foreign parent starts it, and the server below it."""

    def __init__(self, model, log):
        self.log = log
        command = [sys.executable, "-m", "perfkit.serving.server.supervisor"]
        spec = write_spec(ServerSpec(settings=ServerSettings(model=model)))
        with log.open("wb") as stderr:
            self.process = subprocess.Popen([*command, spec], cwd=ROOT, stdout=subprocess.PIPE, stderr=stderr)

    def await_ready(self):
        """The next ready line; empty when there will be none."""
        line = self.process.stdout.readline()
        return json.loads(line) if line else {}

    def server(self):
        """The server's process at present."""
        return psutil.Process(self.process.pid).children()[0]

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


@pytest.fixture
def supervised(models_on_path, tmp_path):
    """Starts supervisors; ends them after the test, and finds them and their servers gone."""
    started = []

    def start(model="lab_models:Mortal"):
        started.append(Supervised(model, tmp_path / f"{len(started)}.log"))
        return started[-1]

    yield start
    for supervisor in started:
        supervisor.end()


def ask(url, text):
    """The output for a text, or None when the server was lost over it; asks again while it is told 503."""
    while True:
        connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=PATIENCE_S)
        connection.connect()
        try:
            connection.request("POST", "/predict", json.dumps({"input": text}))
            answer = connection.getresponse()
            document = json.loads(answer.read())
        except (http.client.HTTPException, ConnectionError):
            return None
        if answer.status != 503:
            return document["output"]


def test_the_ready_line_names_the_server_itself(supervised):
    supervisor = supervised()
    ready = supervisor.await_ready()
    assert ready["pid"] == supervisor.server().pid != supervisor.process.pid
    assert Endpoint(ready["url"]).get("/stats")["process"]["pid"] == ready["pid"]


def test_a_server_whose_device_is_lost_is_back_on_the_same_ports(supervised):
    supervisor = supervised()
    first = supervisor.await_ready()
    assert ask(first["url"], "exit 70") is None
    assert ask(first["url"], "next") == "NEXT", "who connects meanwhile waits or is told 503, but is not refused"
    second = supervisor.await_ready()
    assert (second["url"], second["control_url"]) == (first["url"], first["control_url"])
    assert second["pid"] == supervisor.server().pid != first["pid"]
    for port in (second["url"], second["control_url"]):
        found = Endpoint(port).get("/stats")["process"]
        assert (found["pid"], found["starts"], 0 < found["load_s"] < PATIENCE_S) == (second["pid"], 2, True)
    supervisor.process.terminate()
    assert supervisor.process.wait(PATIENCE_S) == 0


def test_after_a_loss_the_settings_are_those_of_before(supervised):
    supervisor = supervised()
    ready = supervisor.await_ready()
    control = Endpoint(ready["control_url"])
    for workers in (12, 3):  # the second text is shorter
        control.send("PATCH", "/settings", {"workers": workers})
    assert ask(ready["url"], "exit 70") is None
    supervisor.await_ready()
    assert control.get("/settings")["workers"] == 3


def test_a_device_that_is_lost_again_and_again_is_given_up(supervised):
    supervisor = supervised()
    for _ in range(5):
        assert ask(supervisor.await_ready()["url"], "exit 70") is None
    assert supervisor.process.wait(PATIENCE_S) == 70
    last = supervisor.log.read_text().splitlines()[-1]
    assert last == "perfkit: the device was lost 5 times within 60 s; the service is given up"


@pytest.mark.parametrize("code", [0, 3])
def test_any_other_exit_code_is_passed_on(supervised, code):
    supervisor = supervised()
    assert ask(supervisor.await_ready()["url"], f"exit {code}") is None
    assert supervisor.process.wait(PATIENCE_S) == code


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_server_that_is_killed_takes_its_supervisor_along_by_the_same_signal(supervised, number):
    supervisor = supervised()
    os.kill(supervisor.await_ready()["pid"], number)
    assert supervisor.process.wait(PATIENCE_S) == -number


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_supervisor_drains_the_server(supervised, number):
    supervisor = supervised()
    supervisor.await_ready()
    server = supervisor.server()
    supervisor.process.send_signal(number)
    assert (supervisor.process.wait(PATIENCE_S), server.is_running()) == (0, False)


def test_a_signal_to_the_server_itself_is_its_end_and_the_supervisors(supervised):
    supervisor = supervised()
    os.kill(supervisor.await_ready()["pid"], signal.SIGTERM)
    assert supervisor.process.wait(PATIENCE_S) == 0


def test_a_signal_before_the_server_is_ready_ends_both(supervised, eventually):
    supervisor = supervised()
    eventually(lambda: psutil.Process(supervisor.process.pid).children())
    server = supervisor.server()
    supervisor.process.terminate()
    assert supervisor.process.wait(PATIENCE_S) in (0, 130)
    assert not server.is_running()


def test_no_server_outlives_a_supervisor_that_is_killed(supervised, eventually):
    supervisor = supervised()
    supervisor.await_ready()
    server = supervisor.server()
    supervisor.process.kill()
    eventually(lambda: not server.is_running() or server.status() == psutil.STATUS_ZOMBIE)


def test_the_token_is_on_no_command_line(models_on_path, tmp_path):
    environment = os.environ | {"PERFKIT_TOKEN": "s3cret", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "perfkit", "serve", "--model", "noop", "--port", "0"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, env=environment) as process:
        ready = json.loads(process.stdout.readline())
        family = [psutil.Process(process.pid), psutil.Process(ready["pid"])]
        assert not any("s3cret" in word for member in family for word in member.cmdline())
        assert Endpoint(ready["url"], "s3cret").get("/stats")["process"]["pid"] == ready["pid"]
        process.terminate()
