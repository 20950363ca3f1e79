"""Does every wrong input end in one line that says what came, what is allowed and what to do?"""

import socket
from pathlib import Path

import pytest

from perfkit.measuring.collectors import pyspy
from perfkit.resources import data_path

PLANTED = Path(__file__).parents[2] / "measuring" / "planted_models"
NOOP = ("--model", "noop")
SCAN = ("scan", *NOOP, "--vary")

WRONG_USE = [
    ((), "the following arguments are required: COMMAND; perfkit --help tells what there is"),
    (("fly",), "argument COMMAND: invalid choice: 'fly' (choose from "),
    (("runs", "--loud"), "unrecognized arguments: --loud; perfkit --help tells what there is"),
    (("load",), "load got no URL; give that of a running service, or --model for one to be launched"),
    (("scan", "--concurrency", "many"), "argument --concurrency: invalid int value: 'many'; perfkit scan --help tells"),
    (("scan", "--concurrency", "2", "--rate", "3"), "argument --rate: not allowed with argument --concurrency"),
    (("scan", *NOOP, "--seconds", "0"), "argument --seconds: '0' is no time to measure for; it takes a number above 0"),
    (
        ("scan", *NOOP, "--seconds", "nan"),
        "argument --seconds: 'nan' is no time to measure for; it takes a number",
    ),
    (("profile", *NOOP, "--seconds", "-1"), "argument --seconds: '-1' is no time to measure for; it takes a number"),
    (("scan", *NOOP, "--rounds", "0"), "rounds is 0; it takes a whole number, 1 or more"),
    (("scan", *NOOP, "--concurrency", "0"), "concurrency is 0; it takes a whole number from 1 to 10000"),
    (("scan", *NOOP, "--rate", "0"), "rate_rps is 0.0; it takes a number from 0.001 to 1e+06"),
    (("scan", *NOOP, "--seed", "-1"), "seed is -1; it takes a whole number, 0 or more"),
    (("scan", *NOOP, "--set", "wrokers=2"), "unknown setting wrokers; known with a load in closed loop: model, device"),
    (("scan", *NOOP, "--set", "workers"), "--set 'workers' is not NAME=VALUE; write for example --set workers=4"),
    (("scan", *NOOP, "--set", "workers=1", "--set", "workers=2"), "--set names workers twice; give it once"),
    (("scan", *NOOP, "--set", "workers=0"), "workers is 0; it takes a whole number from 1 to 1024"),
    (("scan", *NOOP, "--set", "workers=two"), "workers is 'two'; it takes a whole number from 1 to 1024"),
    (("scan", *NOOP, "--set", "seed=1"), "seed may mean server.seed or load.seed; write one of them"),
    (("scan", *NOOP, "--set", "topology=star"), "topology is 'star'; it takes one of staged, carry"),
    ((*SCAN, "workers"), "--vary 'workers' is not NAME=VALUE; write for example --vary workers=4"),
    ((*SCAN, "workers=1,1"), "the values to vary server.workers over name 1 twice; give each once, and at least one"),
    ((*SCAN, "workers=1,"), "workers is ''; it takes a whole number from 1 to 1024"),
    ((*SCAN, "workers=1,2", "--vary", "workers=4"), "--vary names workers twice; give it once"),
    ((*SCAN, "workers=1", "--vary", "server.workers=4"), "--vary names server.workers twice; give it once, with all"),
    ((*SCAN, "workers=1,2000"), "workers is 2000; it takes a whole number from 1 to 1024"),
    ((*SCAN, "rate_rps=1,2"), "unknown setting rate_rps; known with a load in closed loop: model"),
    ((*SCAN, "workers=1", "--resume"), "--resume needs --out DIR, the folder of the scan to go on with"),
    (
        (*SCAN, "workers=1", "--resume", "--out", "none"),
        "none holds no scan to resume; leave out --resume to",
    ),
    (
        ("scan", "--model", "nope"),
        "unknown model 'nope'; known: minilm, mlp, noop, resnet, simulated, ",
    ),
    (("scan", "--model", "no.such:Model"), "model 'no.such:Model': cannot import no.such: No module named 'no'; give"),
    (("scan", "--model", "planted:Nobody"), "model 'planted:Nobody': module planted has no class Nobody; give module"),
    (("demo", "--model", "simulated:nope"), "unknown preset 'nope'"),
    (("scan", *NOOP, "--payloads", "gone.jsonl"), "payloads is 'gone.jsonl', which is no file; give a file of request"),
    (("scan", *NOOP, "--payloads", "bad.jsonl"), "line 2 of payload file bad.jsonl is not JSON ("),
    (("serve", "--settings", "gone.toml"), "cannot read settings file gone.toml: No such file or directory; give the"),
    (("serve", "--settings", "bad.toml"), "settings file bad.toml is not TOML: "),
    (("serve", "--settings", "odd.toml"), "unknown setting wrokers; known: model, device"),
    (("serve", *NOOP, "--port", "70000"), "port is 70000; it takes 0 (any free one) to 65535"),
    (("serve", *NOOP, "--host", "0.0.0.0"), "host 0.0.0.0 is beyond loopback and no token is set; set PERFKIT_TOKEN"),
    (("load", "ftp://127.0.0.1"), "url is 'ftp://127.0.0.1'; it takes http://HOST:PORT, with or without a path"),
    (("load", "http://127.0.0.1:99999"), "url is 'http://127.0.0.1:99999' (Port out of range 0-65535); it takes"),
    (("load", "URL", "--set", "workers=2"), "workers belongs to the server, which perfkit load does not start; set it"),
    (
        ("load", "URL"),
        "no payloads are known for this service; give a file of request bodies, one JSON document a line",
    ),
    (
        ("scan", "--url", "URL", *NOOP),
        "--url scans a service that already runs: its settings are not ours to set",
    ),
    (
        ("scan", "--url", "URL", "--vary", "workers=1"),
        "workers cannot be varied: the service was not launched by ",
    ),
    (("report", "."), ". holds no demo, scan, run or comparison; perfkit runs list FOLDER lists what there is"),
    (("runs", "list", "gone"), "gone is no folder; give the one that runs were saved to (--out)"),
]


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Files that cannot be used."""
    (tmp_path / "bad.jsonl").write_text('{"input": 1}\n{"input": \n')
    (tmp_path / "bad.toml").write_text("workers = = 2")
    (tmp_path / "odd.toml").write_text("wrokers = 2")
    monkeypatch.syspath_prepend(str(PLANTED))
    monkeypatch.delenv("PERFKIT_TOKEN", raising=False)


@pytest.mark.parametrize(("words", "told"), WRONG_USE, ids=[" ".join(words) for words, _ in WRONG_USE])
def test_wrong_use_is_one_line_and_exit_code_2(perfkit, files, noop_server, words, told):
    ended = perfkit(*(noop_server.url if word == "URL" else word for word in words))
    assert (ended.code, ended.out) == (2, "")
    assert ended.line.startswith(f"perfkit: {told}")


@pytest.mark.parametrize("wrong", [("--model", "nope"), (*NOOP, "--payloads", "gone.jsonl"), (*NOOP, "--set", "x=1")])
def test_a_scan_that_cannot_start_leaves_its_folder_to_the_corrected_one(perfkit, files, tmp_path, wrong):
    assert perfkit("scan", *wrong, "--vary", "workers=1,2", "--out", "scan").code == 2
    assert not (tmp_path / "scan").exists()


def test_a_port_in_use_is_named_with_the_way_out(perfkit):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = perfkit("serve", *NOOP, "--port", port)
    assert (ended.code, ended.out) == (3, "")
    assert ended.line == f"perfkit: port {port} on 127.0.0.1 is in use; choose another, or 0 for any free one"


@pytest.mark.parametrize("words", [("load",), ("scan", "--vary", "concurrency=1,2", "--url")])
def test_a_service_that_is_not_there_is_the_targets_failure(perfkit, bodies, words):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    ended = perfkit(*words, url, "--payloads", bodies)
    assert (ended.code, ended.out) == (4, "")
    assert ended.line == f"perfkit: nothing answers at {url} (Connection refused); is the service running?"


@pytest.mark.parametrize("command", ["scan", "profile"])
def test_a_model_that_cannot_load_is_the_targets_failure(perfkit, files, command):
    ended = perfkit(command, "--model", "planted:Unloadable")
    assert (ended.code, ended.out) == (4, "")
    assert ended.line.startswith("perfkit: model planted:Unloadable cannot load: ")


def test_a_profiler_that_is_not_permitted_says_what_to_grant(perfkit, monkeypatch, tmp_path):
    script = tmp_path / "py-spy"
    script.write_text("#!/bin/sh\necho 'Permission Denied: Try running again with elevated permissions'\nexit 1\n")
    script.chmod(0o755)
    monkeypatch.setattr(pyspy, "find_pyspy", lambda: str(script))
    ended = perfkit("profile", *NOOP)
    assert (ended.code, ended.out) == (3, "")
    assert ended.line.startswith("perfkit: stacks: py-spy may not read process ")
    assert ended.line.endswith("or give the container the capability SYS_PTRACE")


def test_a_folder_that_cannot_be_written_is_told_before_the_measuring(perfkit):
    ended = perfkit(*SCAN, "workers=1", "--out", "/proc/nowhere/scan")
    assert (ended.code, ended.out) == (3, "")
    assert ended.line.startswith("perfkit: cannot write /proc/nowhere/scan/scan.lock: ")
    assert "--out" in ended.line


def test_a_page_that_cannot_be_written_is_the_environments_lack(perfkit):
    ended = perfkit("report", data_path("runs", "v1-tiny"), "--out", "gone/report.html")
    assert (ended.code, ended.out) == (3, "")
    assert ended.line.startswith("perfkit: cannot write the report gone/report.html: No such file or directory; give")
