"""Does reading in columns give just what reading row by row gives, and leave to it what is not plain?"""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from perfkit.measuring.importers import column_blocks, jmeter
from perfkit.measuring.importers.source import Source

SAMPLES = Path(__file__).parent / "samples"
HEAD = "timeStamp,elapsed,label,responseCode,responseMessage,threadName,dataType,success,bytes,allThreads,URL,Connect\n"
PLAIN = "".join(
    f"{1_800_000_000_000 + 7 * (n * 37 % 500)},{20 + n % 9},{'ab'[n % 2]},{200 + 303 * (n % 11 == 0)},OK,t,text,"
    f"{'false' if n % 11 == 0 else 'true'},9,{n % 4},http://x,{n % 3}\n"
    for n in range(500)
)
TRANSACTION = '1800000000100,90,whole,200,"Number of samples in transaction : 2",t,,true,9,4,null,0\n'
CUT = "1800000009999,2"
PLAIN_FILES = {
    "plain": HEAD + PLAIN,
    "transactions beside samplers": HEAD + PLAIN + TRANSACTION,
    "transactions alone": HEAD + TRANSACTION,
    "cut in its last row": HEAD + PLAIN + CUT,
    "blank lines": HEAD + "\n" + PLAIN + "\n\n",
    "no column for success": "timeStamp,elapsed,label,responseCode\n1800000000000,5,x,200\n1800000000001,6,x,503\n",
    "semicolons": (HEAD + PLAIN).replace(",", ";"),
    "no heading": (SAMPLES / "jmeter_headerless.csv").read_text(),
    "nothing below its heading": HEAD,
    "a quoted line end": HEAD + PLAIN + '1800000000100,90,a,200,"one\ntwo",t,text,true,9,4,http://x,0\n',
}
ODD_FILES = {
    "a repeated heading": HEAD + PLAIN + HEAD + PLAIN,
    "a date in place of a number": HEAD + PLAIN + "2026/03/02 10:00:00,5,a,200,OK,t,text,true,9,4,http://x,0\n",
    "an empty time": HEAD + PLAIN + ",5,a,200,OK,t,text,true,9,4,http://x,0\n",
    "a negative time": HEAD + PLAIN + "1800000000100,-5,a,200,OK,t,text,true,9,4,http://x,0\n",
    "microseconds": HEAD + PLAIN + "1800000000100000,5,a,200,OK,t,text,true,9,4,http://x,0\n",
    "bytes that are not UTF-8": (HEAD + PLAIN).encode() + b"1800000000100,5,\xff,200,OK,t,text,true,9,4,x,0\n",
    "no elapsed": "timeStamp,label\n1800000000000,x\n",
}


@pytest.fixture
def read(tmp_path, monkeypatch):
    """Reads a text in columns where that is possible, or row by row."""
    path = tmp_path / "x.jtl"

    def reading(content, least_bytes):
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        monkeypatch.setattr(column_blocks, "LEAST_BYTES", least_bytes)
        return jmeter.read(Source(path))

    return reading


def told(imported):
    """Everything that was read, the requests as lists."""
    requests = imported.requests
    columns = () if requests is None else (requests.start_ns, requests.latency_ns, requests.is_error, requests.name)
    names = () if requests is None else requests.names
    return dataclasses.replace(imported, requests=None), [np.asarray(column).tolist() for column in columns], names


@pytest.mark.parametrize("name", [*PLAIN_FILES, *ODD_FILES])
def test_columns_and_rows_tell_the_same(read, name):
    content = {**PLAIN_FILES, **ODD_FILES}[name]
    assert told(read(content, 0)) == told(read(content, 1 << 60))


@pytest.mark.parametrize("name", PLAIN_FILES)
def test_plain_files_are_read_in_columns(read, monkeypatch, name):
    monkeypatch.setattr(jmeter, "_read_rows", None)
    read(PLAIN_FILES[name], 0)


@pytest.mark.parametrize("name", ODD_FILES)
def test_what_is_not_plain_is_left_to_the_reader_of_rows(read, monkeypatch, name):
    seen = []
    read_rows = jmeter._read_rows
    monkeypatch.setattr(jmeter, "_read_rows", lambda source: seen.append(1) or read_rows(source))
    read(ODD_FILES[name], 0)
    assert seen == [1]


def test_a_row_broken_over_two_lines_is_left_to_the_reader_of_rows(read, monkeypatch):
    monkeypatch.setattr(column_blocks, "_BLOCK_BYTES", 4096)
    broken = '1800000000100,90,a,200,"one\ntwo",t,text,true,9,4,http://x,0\n'
    content = HEAD + (PLAIN + broken) * 20
    assert told(read(content, 0)) == told(read(content, 1 << 60))
