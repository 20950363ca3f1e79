"""Is the caller's trace taken up, and a wrong one replaced as the standard wants?"""

import re

import pytest

from perfkit.serving.server.trace import read_trace

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def test_the_callers_trace_is_taken_up():
    assert read_trace(f"00-{TRACE}-{SPAN}-01".encode()) == (TRACE, SPAN)


def test_a_later_version_may_carry_more():
    assert read_trace(f"01-{TRACE}-{SPAN}-01-more".encode()) == (TRACE, SPAN)


@pytest.mark.parametrize(
    "header",
    [
        None,
        b"",
        f"ff-{TRACE}-{SPAN}-01".encode(),
        f"00-{TRACE}-{SPAN}-01-more".encode(),
        f"00-{TRACE.upper()}-{SPAN}-01".encode(),
        f"00-{'0' * 32}-{SPAN}-01".encode(),
        f"00-{TRACE}-{'0' * 16}-01".encode(),
        f"00-{TRACE}-{SPAN}".encode(),
    ],
)
def test_what_is_not_understood_begins_a_new_trace(header):
    first, second = read_trace(header), read_trace(header)
    assert re.fullmatch("[0-9a-f]{32}", first.trace_id)
    assert (first.parent_id, first.trace_id != second.trace_id) == ("", True)
