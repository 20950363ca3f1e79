"""R17: does nobody get an answer who should not?

Loopback by default; beyond it only with a token, else the start fails. Without a token only this machine's own names
are served, so that no web page can reach the port under its own name. The control port is on loopback, and no model
comes from an address. Target: 40 cases of bind, token and host, 0 unauthenticated 2xx.
"""

from __future__ import annotations

import ast
import itertools
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from perfkit.errors import ConfigError
from perfkit.serving.server.defaults import open_device, settings_for
from perfkit.serving.server.registry import create_model

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "s3cret-tokén"
TARGET = "0 unauthenticated 2xx in 40 cases"
LOOPBACK_BINDS = ("127.0.0.1", "localhost", "::1")
BINDS = (*LOOPBACK_BINDS, "0.0.0.0", "::")
OWN_NAMES = ("localhost", "[::1]:8000")
HOSTS = (*OWN_NAMES, "evil.example", "127.0.0.1.evil.example:80")
BEARERS = (None, "", "Bearer", "Bearer wrong", f"Bearer {TOKEN[:-1]}", f"bearer{TOKEN}", f"Bearer {TOKEN}x")
PATHS = (
    "/health/live",
    "/health/ready",
    "/stats",
    "/metrics",
    "/predict",
    "/v2",
    "/v2/health/ready",
    "/openapi.json",
    "/settings",
)


def own_address():
    """An address of this machine that others may reach; loopback when it has none."""
    addresses = [entry.address for entries in psutil.net_if_addrs().values() for entry in entries]
    return next((name for name in addresses if name.count(".") == 3 and not name.startswith("127.")), "127.0.0.1")


def statuses(dial, address, port, host, bearer, *more):
    """The status of every path for one kind of visitor."""
    headers = [f"Host: {host}", *more] if bearer is None else [f"Host: {host}", f"Authorization: {bearer}", *more]
    wire = dial(port, address=address)
    documents = [{"input": 1} if path == "/predict" else None for path in PATHS]
    asked = zip(PATHS, documents, strict=True)
    return [wire.ask(path, document, *headers, host=False).status for path, document in asked]


def unauthenticated(dial, server, bind, token, host):
    """The 2xx that a visitor got who may get none, and the statuses of one who may."""
    address = bind if bind in ("127.0.0.1", "::1") else "127.0.0.1" if bind == "localhost" else own_address()
    found = []
    for bearer in BEARERS:
        if token or host not in OWN_NAMES:
            found += statuses(dial, address, server.port, host, bearer)
        found += statuses(dial, address, server.port, host, bearer, "Origin: http://evil.example")
    admitted = statuses(dial, address, server.port, host, f"Bearer {TOKEN}")
    return [status for status in found if status < 300], admitted


SERVED = [200] * 8 + [404]


@pytest.fixture
def cases(serve, dial):
    """Runs all cases; returns how many there were, what got through, and those who were wrongly turned away."""

    def run(binds=BINDS, **env):
        count, leaks, turned_away = 0, [], []
        for bind, token in itertools.product(binds, (None, TOKEN)):
            if not token and bind not in LOOPBACK_BINDS:
                count += len(HOSTS) * refuses_to_start(bind)
                continue
            server = serve(host=bind, token=token, env=env)
            for host in HOSTS:
                leaked, admitted = unauthenticated(dial, server, bind, token, host)
                count += 1
                leaks += [(bind, token, host, status) for status in leaked]
                if (admitted == SERVED) != bool(token or host in OWN_NAMES):
                    turned_away.append((bind, token, host, admitted))
        return count, leaks, turned_away

    return run


def refuses_to_start(bind):
    """Whether `perfkit serve` ends with exit code 2 and one line that says token."""
    command = [sys.executable, "-m", "perfkit", "serve", "--model", "noop", "--host", bind, "--port", "0"]
    environment = {name: value for name, value in os.environ.items() if name != "PERFKIT_TOKEN"}
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60)
    lines = ended.stderr.strip().splitlines()
    return (ended.returncode, ended.stdout, len(lines), "token" in ended.stderr) == (2, "", 1, True)


def test_nobody_without_the_right_to_it_gets_an_answer(cases, told):
    count, leaks, turned_away = cases()
    told("R17", TARGET, cases=count, unauthenticated_2xx=len(leaks), wrongly_refused=len(turned_away))
    assert (count, leaks, turned_away) == (40, [], [])


def test_the_cases_notice_a_server_that_trusts_everybody(cases):
    """The control of the test above."""
    _, leaks, _ = cases(["127.0.0.1"], PERFKIT_TRUSTS_ALL="1")
    assert len(leaks) > 100


def test_the_control_port_is_on_loopback_whatever_the_service_port_is_on(serve):
    server = serve(host="0.0.0.0", token=TOKEN)
    listening = {
        entry.laddr for entry in psutil.Process(server.pid).net_connections() if entry.status == psutil.CONN_LISTEN
    }
    control_port = int(server.control.url.rpartition(":")[2])
    assert {(address.ip, address.port) for address in listening} == {
        ("0.0.0.0", server.port),
        ("127.0.0.1", control_port),
    }
    if own_address() != "127.0.0.1":
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((own_address(), control_port), timeout=5)


def test_the_control_port_takes_no_orders_from_web_pages(serve, dial):
    wire = dial(int(serve().control.url.rpartition(":")[2]))
    found = [
        wire.ask("/shutdown", {}, *headers, host=False)[0]
        for headers in (["Host: evil.example"], ["Host: localhost", "Origin: http://evil.example"])
    ]
    assert found == [403, 403]
    assert wire.ask("/settings")[0] == 200


def choose(model, settings):
    """What the server does with a model's name before anything else."""
    open_device(settings_for(model, settings))
    create_model(model)


@pytest.mark.parametrize("settings", [{}, {"device": "simulated"}], ids=["auto", "simulated"])
def test_no_model_comes_from_an_address(settings):
    """Nothing is fetched: the address belongs to a listener that nobody calls."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        place = f"127.0.0.1:{listener.getsockname()[1]}"
        for model in (
            f"http://{place}/model",
            f"https://{place}/model:Class",
            f"http:{place}",
            f"//{place}/model.safetensors",
            f"file://{place}/etc/passwd",
            f"simulated:http://{place}/preset",
            "simulated:../../etc/passwd",
            "os.path:../../etc/passwd",
        ):
            with pytest.raises(ConfigError):
                choose(model, settings)
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_the_model_cannot_be_changed_from_outside(serve, dial):
    server = serve()
    for port in (server.port, int(server.control.url.rpartition(":")[2])):
        wire = dial(port)
        body = json.dumps({"model": "mlp"}).encode()
        wire.send(
            b"PATCH /settings HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
        )
        assert wire.answer()[0] in (400, 404)
    assert server.control.get("/settings")["model"] == "noop"


def test_the_token_is_compared_in_constant_time():
    """No comparison operator touches it: only `hmac.compare_digest` may."""
    tree = ast.parse((ROOT / "perfkit/serving/server/router.py").read_text("utf-8"))
    calls = [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Call)]
    compared = [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Compare)]
    assert [call for call in calls if "compare_digest" in call and "_wanted" in call]
    assert [text for text in compared if "_wanted" in text or "token" in text] == []
