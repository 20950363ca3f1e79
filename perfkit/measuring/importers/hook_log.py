"""What does a log of a server's own hooks say (time, process, hook: `pre` before a request, `post` after it)?

The time between the two is what the worker held the request for; the client's wait in front of it is not in it.
One worker holds one request at a time. Other hooks (a worker's start and end) are no requests.
"""

from __future__ import annotations

import re

from perfkit.clock import NS_PER_S
from perfkit.measuring.importers.delimited import Table, headings
from perfkit.measuring.importers.imported import Imported, Tally, Timing
from perfkit.measuring.importers.requests import RequestLog
from perfkit.measuring.importers.source import Source

NAME = "hook log CSV"
_COLUMNS = ["time", "pid", "hook"]
_BEFORE, _AFTER = ("pre", "pre_request"), ("post", "post_request")
_EPOCH_S = re.compile(r"([1-9]\d{9})(?:\.(\d{1,9})\d*)?")  # ten digits are 2001 to 2286: more are no seconds
_LONGEST_NS = 86_400 * NS_PER_S
_NO_NUMBER = "time that is no number of epoch seconds"
_OTHER = "hook of another kind"
_UNPAIRED = "pre or post without its pair"


def matches(head: str) -> bool:
    """By the names of the columns."""
    return [name.lower() for name in headings(head)] == _COLUMNS


def read(source: Source) -> Imported:
    """Every pair of pre and post of one process as a request."""
    tally, log = Tally(), RequestLog()
    began: dict[str, int] = {}
    for stamp, process, hook in Table(source, tally).rows():
        match, kind = _EPOCH_S.fullmatch(stamp.strip()), hook.strip().lower()
        at_ns = int(match[1]) * NS_PER_S + int((match[2] or "").ljust(9, "0")) if match else None
        if at_ns is None:
            tally.dropped[_NO_NUMBER] += 1
        elif kind in _BEFORE:
            tally.dropped[_UNPAIRED] += process in began
            began[process] = at_ns
        elif kind not in _AFTER:
            tally.dropped[_OTHER] += 1
        elif process in began and 0 <= at_ns - began[process] < _LONGEST_NS:
            start_ns = began.pop(process)
            log.add(start_ns, at_ns - start_ns, False, "")
            tally.kept += 2
        else:
            tally.dropped[_UNPAIRED] += 1
    tally.dropped[_UNPAIRED] += len(began)
    tally.dropped = +tally.dropped  # without the kinds that did not occur
    return Imported(
        path=str(source.path),
        format=NAME,
        rows=tally.rows(),
        timing=Timing(unit="s", clock="epoch, at the start of the work", scope="request", basis="unknown"),
        levels=log.levels(errors=None) if len(log) else (),
        requests=log.requests(),
        notes=(*source.notes, "from the server's own hooks: the wait in front of it is not in it, nor are errors"),
    )
