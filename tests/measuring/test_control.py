"""How do answers of a service's port become values or errors?"""

import socket

import pytest

from perfkit.errors import ConfigError, TargetFailed
from perfkit.measuring.control import Endpoint


@pytest.mark.parametrize(
    "url",
    ["ftp://127.0.0.1:1", "127.0.0.1:80", "http://", "http://127.0.0.1:99999", "http://127.0.0.1:x", "http://[::1"],
)
def test_what_is_no_http_address_is_refused_with_what_it_takes(url):
    with pytest.raises(ConfigError) as refusal:
        Endpoint(url)
    assert str(refusal.value).startswith(f"url is {url!r}")
    assert str(refusal.value).endswith("it takes http://HOST:PORT, with or without a path")


def test_json_comes_back_as_values(foreign):
    foreign.body = b'{"workers": 2}'
    endpoint = Endpoint(foreign.url)
    assert (endpoint.get("/settings"), endpoint.send("PATCH", "/settings", {})) == ({"workers": 2}, {"workers": 2})


def test_a_refused_request_is_the_callers_error(foreign, error_body):
    foreign.status, foreign.body = 400, error_body("workers is 0; it takes 1 or more")
    with pytest.raises(ConfigError, match=r"^workers is 0; it takes 1 or more$"):
        Endpoint(foreign.url).send("PATCH", "/settings", {"workers": 0})


@pytest.mark.parametrize(
    ("body", "told"), [(b"<html>oops</html>", "<html>oops</html>"), (b'{"error": 3}', '{"error": 3}')]
)
def test_any_other_failure_is_the_targets_and_says_what_came(foreign, body, told):
    foreign.status, foreign.body = 502, body
    with pytest.raises(TargetFailed) as failure:
        Endpoint(foreign.url).get("/stats")
    assert str(failure.value) == f"GET {foreign.url}/stats answered 502: {told}"


def test_nobody_at_the_port_is_the_targets_failure():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    with pytest.raises(TargetFailed, match=f"^nothing answers at {url} .Connection refused.; is the service running"):
        Endpoint(url).probe()
    with pytest.raises(TargetFailed, match=f"^{url} does not answer .Connection refused.; is the service running"):
        Endpoint(url).get("/stats")
