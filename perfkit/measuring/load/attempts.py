"""Which attempt at which request does a number on the wire stand for?

A request that is sent again must not look like the same row to the server's ledger, and its last
attempt must still be found there. So the header Perfkit-Id carries both: the request's number, and
above it how many attempts went before. A first attempt's number is the request's own.
"""

from __future__ import annotations

from typing import Any, TypeVar

STRIDE = 10**15
"""Decimal, so that a log is readable: 2000000000000007 is the third attempt at request 7."""
MOST_ATTEMPTS = 100  # of one request: its number then stays below 10^18, which servers read as an int64


Number = TypeVar("Number", int, Any)  # Any: a column of numbers


def attempt_of(number: Number) -> Number:
    """Which attempt a number on the wire is, from 1."""
    return number // STRIDE + 1


def request_of(number: Number) -> Number:
    """The request that a number on the wire belongs to."""
    return number % STRIDE
