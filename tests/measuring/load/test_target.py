"""Which addresses may be loaded unasked?"""

import socket

import pytest

from perfkit.errors import ConfigError, TargetFailed
from perfkit.measuring.load.loops import ClosedLoop, OpenLoop
from perfkit.measuring.load.target import Target, check_permission, find_target

FAST, SLOW = OpenLoop(rate_rps=101), OpenLoop(rate_rps=100)


def test_a_url_is_split_and_resolved():
    target = find_target("http://127.0.0.1:8000/v1/predict?model=a")
    assert target == Target(
        host="127.0.0.1",
        port=8000,
        path="/v1/predict?model=a",
        family=socket.AF_INET,
        address=("127.0.0.1", 8000),
    )
    assert target.authority == "127.0.0.1:8000"
    assert find_target("http://127.0.0.1").path == "/"
    assert find_target("http://[::1]:9/x").authority == "[::1]:9"


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1/",
        "127.0.0.1:8000",
        "http://",
        "http://127.0.0.1:99999/",
        "http://me:secret@127.0.0.1/",
        "http://127.0.0.1/with space",
        "http://127.0.0.1/ä",
        "http://127.0.0.1/a\x7fb",
        "http://münchen.test/",
    ],
)
def test_a_url_that_cannot_be_used_is_refused(url):
    with pytest.raises(ConfigError, match="it takes http://HOST:PORT/PATH"):
        find_target(url)


def test_a_host_that_cannot_be_resolved_is_the_targets_failure():
    with pytest.raises(TargetFailed, match=r"cannot resolve host two\.\.dots of http://two\.\.dots/"):
        find_target("http://two..dots/")


def test_line_breaks_in_a_url_never_reach_the_request():
    assert find_target("http://127.0.0.1/a\r\nInjected:yes").path == "/aInjected:yes"


def _at(address):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return Target(host="name", port=80, path="/", family=family, address=(address, 80))


@pytest.mark.parametrize("address", ["127.0.0.1", "127.1.2.3", "::1"])
def test_loopback_takes_any_load(address):
    check_permission(_at(address), FAST, allow_remote=False)
    check_permission(_at(address), ClosedLoop(concurrency=1000), allow_remote=False)


@pytest.mark.parametrize("address", ["10.0.0.5", "192.168.1.1", "172.16.0.9", "fd00::1"])
def test_a_private_address_takes_a_gentle_load_only(address):
    check_permission(_at(address), SLOW, allow_remote=False)
    check_permission(_at(address), ClosedLoop(concurrency=10, think_time_s=0.1), allow_remote=False)
    for load in (FAST, ClosedLoop(), ClosedLoop(concurrency=11, think_time_s=0.1)):
        with pytest.raises(ConfigError, match="another host"):
            check_permission(_at(address), load, allow_remote=False)
        check_permission(_at(address), load, allow_remote=True)


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "169.254.169.254", "2001:4860:4860::8888", "fe80::1%1"])
def test_a_remote_address_takes_nothing_unasked(address):
    with pytest.raises(ConfigError, match="outside this host and its private network"):
        check_permission(_at(address), OpenLoop(rate_rps=1), allow_remote=False)
    check_permission(_at(address), FAST, allow_remote=True)
