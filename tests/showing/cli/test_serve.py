"""Does the server say where it is, take settings, keep strangers out, and go in order?"""

import http.client
import json
import signal
from urllib.parse import urlsplit

import psutil
import pytest


def ready(process):
    return json.loads(process.stdout.readline())


def ask(url, path, body=None, headers=None):
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
    try:
        connection.request("POST" if body else "GET", path, body, headers or {})
        reply = connection.getresponse()
        return reply.status, reply.read()
    finally:
        connection.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_one_line_says_where_it_is_and_a_signal_drains_it_and_ends_it_with_0(start, number):
    process = start("serve", "--model", "noop", "--port", "0")
    found = ready(process)
    assert set(found) == {"url", "control_url", "pid"}
    assert psutil.Process(found["pid"]).ppid() == process.pid, "the server's own, below its supervisor"
    assert ask(found["url"], "/predict", b'{"input": 1}')[0] == 200
    assert ask(found["control_url"], "/settings")[0] == 200
    process.send_signal(number)
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "")
    assert not psutil.pid_exists(found["pid"])


def test_a_request_that_is_being_answered_is_answered_before_the_end(start, tmp_path):
    (tmp_path / "gated.py").write_text(
        "import os, pathlib, time\nclass Gated:\n    def predict(self, inputs):\n        pathlib.Path('in').touch()\n"
        "        while not os.path.exists('gate'): time.sleep(0.01)\n        return inputs\n"
    )
    process = start("serve", "--model", "gated:Gated", "--port", "0")
    connection = http.client.HTTPConnection(urlsplit(ready(process)["url"]).netloc, timeout=30)
    connection.request("POST", "/predict", b'{"input": 7}')
    while not (tmp_path / "in").exists():
        assert process.poll() is None
    process.terminate()
    (tmp_path / "gate").touch()
    assert json.loads(connection.getresponse().read())["output"] == 7
    assert process.wait(60) == 0


def test_settings_as_toml_are_read_back_as_they_were(perfkit, tmp_path):
    words = ("serve", "--model", "simulated:s003-threads", "--set", "workers=7", "--set", "queue.deadline_s=0.5")
    first = perfkit(*words, "--show-settings")
    assert (first.code, first.err) == (0, "")
    (tmp_path / "saved.toml").write_text(first.out)
    again = perfkit("serve", "--settings", "saved.toml", "--show-settings")
    assert (again.code, again.out) == (0, first.out)
    assert 'model = "simulated:s003-threads"\n' in first.out
    assert "workers = 7\n" in first.out
    assert "deadline_s = 0.5\n" in first.out


def test_every_setting_says_its_unit_range_default_and_whether_it_changes_live(perfkit):
    page = perfkit("serve", "--model", "noop", "--set", "workers=3", "--show-settings").out.splitlines()
    above = {line: page[number - 1] for number, line in enumerate(page)}
    assert above["workers = 3"] == (
        "# model workers (concurrency.model = pool, asyncio or processes) · a whole number from 1 to 1024 · "
        "default 1 · changes live"
    )
    assert "(seconds) · default none · changes live" in above["# deadline_s is not set"]
    assert above["seed = 0"].endswith("default 0 · needs a restart")
    unexplained = [line for line in page if " = " in line and line[0] != "#" and above[line][:2] != "# "]
    assert unexplained == []


def test_a_flag_wins_over_the_file_and_a_preset_brings_its_own_defaults(perfkit, tmp_path):
    (tmp_path / "saved.toml").write_text('model = "noop"\nworkers = 2\n')
    other = perfkit("serve", "--settings", "saved.toml", "--model", "mlp", "--show-settings").out
    assert ('model = "mlp"\n' in other, "workers = 2\n" in other) == (True, True)
    by_model = perfkit("serve", "--model", "simulated:s003-threads", "--show-settings").out
    by_set = perfkit("serve", "--set", "model=simulated:s003-threads", "--show-settings").out
    assert by_model == by_set != perfkit("serve", "--model", "noop", "--show-settings").out


def test_beyond_loopback_a_token_from_the_environment_is_needed_and_asked_for(start, tmp_path):
    words = ("serve", "--model", "noop", "--host", "0.0.0.0", "--port", "0", "--token-env", "MY_TOKEN")
    refused = start(*words)
    assert refused.wait(60) == 2
    assert "token" in refused.stderr.read()
    process = start(*words, env={"MY_TOKEN": "secret"})
    url = f"http://127.0.0.1:{urlsplit(ready(process)['url']).port}"
    assert ask(url, "/predict", b'{"input": 1}')[0] == 401
    assert ask(url, "/predict", b'{"input": 1}', {"Authorization": "Bearer secret"})[0] == 200
    assert "secret" not in " ".join(psutil.Process(process.pid).cmdline())


def test_the_token_is_looked_for_in_the_usual_variable(start):
    process = start("serve", "--model", "noop", "--port", "0", env={"PERFKIT_TOKEN": "usual"})
    assert ask(ready(process)["url"], "/health/live")[0] == 401


def test_a_model_in_the_working_folder_is_served(start, tmp_path):
    (tmp_path / "mine.py").write_text(
        "class Twice:\n    def predict(self, inputs):\n        return [2 * x for x in inputs]\n"
    )
    process = start("serve", "--model", "mine:Twice", "--port", "0")
    status, body = ask(ready(process)["url"], "/predict", b'{"inputs": [1, 2]}')
    assert (status, json.loads(body)["outputs"]) == (200, [2, 4])
