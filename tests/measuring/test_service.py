"""Does a launched service come up, tell the truth about itself, and go without a trace? And an attached one?"""

import os
import signal
import socket
import subprocess
import sys

import psutil
import pytest

from perfkit.errors import ConfigError, TargetFailed
from perfkit.measuring.experiment import measure
from perfkit.measuring.load.loops import ClosedLoop
from perfkit.measuring.service import Service, attach, launch
from perfkit.settings.server import ServerSettings


def test_a_launched_service_is_a_process_with_its_settings_until_it_is_closed(leftovers):
    with launch(model="noop", workers=2, batch={"max_size": 4}) as service:
        process = psutil.Process(service.pid)
        settings = service.settings
        stats = service.stats()
        assert leftovers() == [service.log.parent.name]
    assert (settings.model, settings.workers, settings.batch.max_size) == ("noop", 2, 4)
    assert (stats["model"], stats["simulated"], stats["is_ready"]) == ("noop", False, True)
    assert not process.is_running()
    assert leftovers() == []
    service.close()  # closing twice is no error


def test_a_whole_record_of_settings_can_be_launched_and_changed_live():
    with launch(ServerSettings(model="noop", workers=3)) as service:
        service.configure({"workers": 1, "batch.max_size": 8})
        assert (service.settings.workers, service.settings.batch.max_size) == (1, 8)
        with pytest.raises(ConfigError, match=r"^ledger.capacity cannot change while the server runs"):
            service.configure({"ledger.capacity": 2048})
        with pytest.raises(ConfigError, match=r"^workers is 0; it takes a whole number from 1 to 1024$"):
            service.configure({"workers": 0})


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"model": "nope"},
            "unknown model 'nope'; known: minilm, mlp, noop, resnet, simulated, simulated:PRESET, module:Class",
        ),
        ({"model": "noop", "wrokers": 2}, "unknown setting wrokers; known: model, device"),
        ({"model": "noop", "workers": 0}, "workers is 0; it takes a whole number from 1 to 1024"),
    ],
)
def test_what_cannot_be_served_is_refused_in_one_line_and_leaves_nothing(leftovers, changes, told):
    with pytest.raises(ConfigError) as refusal:
        launch(**changes)
    assert str(refusal.value).startswith(told)
    assert "\n" not in str(refusal.value)
    assert leftovers() == []


def test_a_model_that_cannot_load_is_the_targets_failure(planted_models, leftovers):
    with pytest.raises(TargetFailed, match=r"^model planted:Unloadable cannot load: .* the weights are not there$"):
        launch(model=f"{planted_models}:Unloadable")
    assert leftovers() == []


def test_whatever_a_model_prints_goes_to_the_log_and_holds_nothing_up(planted_models, payloads, tmp_path):
    with launch(model=f"{planted_models}:Chatty") as service:
        run = measure(service, ClosedLoop(concurrency=2, payloads=payloads), 0.2, tmp_path)
        assert run.point["errors"] == {}
        printed = service.log.read_text()
    assert "imported\n" in printed
    assert '{"url": "http://nowhere"}' in printed
    assert printed.count("x" * 100_000) >= len(run.table("requests"))


def test_files_in_the_working_folder_shadow_nothing_and_can_be_served(tmp_path, monkeypatch):
    for name in ("random", "queue", "httptools"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('a file of the user, imported by mistake')")
    (tmp_path / "homemade.py").write_text("class Model:\n    def predict(self, inputs):\n        return inputs\n")
    monkeypatch.chdir(tmp_path)
    with launch(model="homemade:Model") as service:
        assert service.stats()["model"] == "homemade:Model"


def test_a_killed_service_is_told_as_such_by_whatever_notices_first():
    with launch(model="noop") as service:
        os.kill(service.pid, signal.SIGKILL)
        with pytest.raises(TargetFailed, match=r"^the service ended with exit code -9 \(SIGKILL\); its last words: "):
            service.stats()
        with pytest.raises(TargetFailed, match=r"^the service ended with exit code -9 \(SIGKILL\); its last words: "):
            service.check_alive()


def test_a_service_ends_with_the_process_that_launched_it(tmp_path):
    """Killed, not closed: no code of ours runs any more."""
    story = "import perfkit, time; s = perfkit.launch(model='noop'); print(s.pid, flush=True); time.sleep(60)"
    parent = subprocess.Popen(
        [sys.executable, "-c", story], stdout=subprocess.PIPE, env=os.environ | {"TMPDIR": str(tmp_path)}
    )
    child = psutil.Process(int(parent.stdout.readline()))
    parent.kill()
    parent.communicate()
    gone, alive = psutil.wait_procs([child], timeout=20)
    assert (gone, alive) == ([child], [])


@pytest.mark.parametrize(
    ("url", "predict"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000/predict"),
        ("http://127.0.0.1:8000/", "http://127.0.0.1:8000/predict"),
        ("http://127.0.0.1:8000/v1/embed", "http://127.0.0.1:8000/v1/embed"),
    ],
)
def test_requests_go_to_the_path_given_else_to_predict(url, predict):
    assert Service(url).predict_url == predict


def test_an_attached_service_has_an_address_and_nothing_else(foreign):
    service = attach(foreign.url)
    assert (service.pid, service.settings, service.stats(), service.log) == (None,) * 4
    with pytest.raises(ConfigError, match="was not launched by perfkit"):
        service.configure({"workers": 2})
    with pytest.raises(TargetFailed, match="keeps no ledger"):
        service.ledger("requests", 0)
    service.close()
    attach(foreign.url)  # closing left it alone
    assert repr(service) == f"Service('{foreign.url}')"


def test_attaching_to_nobody_fails_at_once():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    with pytest.raises(TargetFailed, match="is the service running"):
        attach(url)
