"""Are bodies sent as they stand in the file, and is a bad file refused with its line?"""

import socket

import pytest

from perfkit.errors import ConfigError
from perfkit.measuring.load.loops import ClosedLoop
from perfkit.measuring.load.payloads import build_request, read_payloads
from perfkit.measuring.load.target import Target

TARGET = Target(host="127.0.0.1", port=80, path="/predict", family=socket.AF_INET, address=("127.0.0.1", 80))


def test_each_line_is_a_body_as_it_stands(tmp_path):
    path = tmp_path / "some.jsonl"
    path.write_bytes('{"input":  "zwei  Räume"}\n[1, 2]\r\n"%d"\n\n'.encode())
    assert read_payloads(path) == ['{"input":  "zwei  Räume"}'.encode(), b"[1, 2]", b'"%d"']


def test_a_request_is_split_where_its_number_goes():
    parts = build_request(TARGET, b'{"a": 1}', ClosedLoop(keep_alive=False))
    assert parts.before_id == (
        b"POST /predict HTTP/1.1\r\nHost: 127.0.0.1:80\r\nContent-Type: application/json\r\n"
        b"Accept: application/json\r\nContent-Length: 8\r\nConnection: close\r\nPerfkit-Id: "
    )
    assert parts.after_id == b'\r\n\r\n{"a": 1}'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"a": 1}\n{"a": }\n', "line 2 of payload file .* is not JSON"),
        (b'{"a": 1}\n\n{"a": 2}\n', "line 2 of payload file .* is empty"),
        (b"\n\n", "payload file .* is empty; give one JSON document a line"),
        (b'{"a": "\xff"}\n', "line 1 of payload file .* is not JSON"),
    ],
)
def test_a_bad_file_is_refused_with_its_line(tmp_path, content, message):
    path = tmp_path / "bad.jsonl"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=message):
        read_payloads(path)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"cannot read payload file .*: No such file or directory"):
        read_payloads(tmp_path / "none.jsonl")
