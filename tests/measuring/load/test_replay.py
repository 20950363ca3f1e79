"""Does a schedule file become exactly its instants, and does a bad one say which line is wrong?"""

import pytest

from perfkit.errors import ConfigError
from perfkit.measuring.load.replay import Replay, read_schedule
from perfkit.measuring.load.schedule import replay_offsets

MS = 1_000_000


@pytest.fixture
def schedule(tmp_path):
    """Read a text as a schedule file."""

    def read(text, **how):
        path = tmp_path / "schedule.txt"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_schedule(Replay(file=str(path), **how))

    return read


def told(schedule):
    return [(due.at_ns, due.payload, due.lane) for due in schedule]


def test_csv_is_read_in_the_stated_unit_and_put_in_order(schedule):
    found = schedule("lane, at ,payload\r\nonline,20,1\noffline,5.5,0\n", unit="ms")
    assert told(found) == [(5_500_000, 0, "offline"), (20 * MS, 1, "online")]


def test_json_lines_need_only_an_instant(schedule):
    found = schedule('{"at": 0.25}\n\n{"at": 0.5, "model": "x"}\n')
    assert told(found) == [(250 * MS, None, None), (500 * MS, None, None)]


def test_an_epoch_in_nanoseconds_keeps_each_of_them(schedule):
    found = schedule("at\n1764500000000000123\n1764500000000000001\n", unit="ns", origin="first")
    assert [due.at_ns for due in found] == [0, 122]


def test_twice_the_speed_halves_every_instant(schedule):
    assert [due.at_ns for due in schedule("at\n1\n3\n", speed=2.0)] == [500 * MS, 1500 * MS]


@pytest.mark.parametrize(
    ("text", "how", "complaint"),
    [
        ("", {}, "has no column at; its first line is ''"),
        ("at\n", {}, "holds no line"),
        ("time,payload\n1,2\n", {}, "has no column at; its first line is 'time,payload'"),
        ("at\n1\nsoon\n", {}, "line 3 of schedule file .*: at is 'soon'; it takes an instant as a number"),
        ("at\n1\n\n2\nnan\n", {}, "at is 'nan'"),
        ('{"at": 1}\n[2]\n', {}, r"line 2 of schedule file .* is '\[2\]'; it takes an object"),
        ('{"at": 1}\n{"at": \n', {}, "line 2 of schedule file .* is not JSON"),
        ('{"at": true}\n', {}, "at is True"),
        ("at,payload\n1,-1\n", {}, "payload is '-1'; it takes a number of the payload file's lines, from 0"),
        ("at,payload\n1,0.5\n", {}, "payload is '0.5'"),
        ("at,payload\n1,0\n2,\n", {}, "names a payload in 1 of 2 lines; name one in each, or in none"),
        ('{"at": 1, "lane": 3}\n', {}, "lane is 3; it takes a name"),
        ("at\n-1\n", {}, "an instant -1 s before the start"),
        ("at\n1764500000.5\n", {}, "looks like an epoch or another unit; --set replay.origin=first"),
        (b"at\n\xff\xfe1\n", {}, "is no UTF-8 text"),
    ],
)
def test_a_bad_file_says_what_is_wrong_where_and_what_is_allowed(schedule, text, how, complaint):
    with pytest.raises(ConfigError, match=complaint):
        schedule(text, **how)


def test_a_file_that_is_missing_or_not_named_is_said_to_be(tmp_path):
    with pytest.raises(ConfigError, match=r"cannot read schedule file .*: No such file"):
        read_schedule(Replay(file=str(tmp_path / "none.csv")))
    with pytest.raises(ConfigError, match="a replay needs a schedule file"):
        read_schedule(Replay())


def test_a_replay_ends_with_the_load_and_is_not_stretched_over_a_longer_one(schedule):
    found = schedule("at\n0\n1\n2\n3\n")
    assert replay_offsets(found, 2.5).tolist() == [0, 1000 * MS, 2000 * MS]
    with pytest.raises(ConfigError, match="ends after 3 s and load is applied for 11 s"):
        replay_offsets(found, 11.0)
