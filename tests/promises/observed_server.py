"""What did a server process itself count, until its very end? Runs it, and prints its counters when it has ended.

With PERFKIT_LOSES or PERFKIT_TRUSTS_ALL set it breaks a promise: the controls of the tests that look for that.
"""

from __future__ import annotations

import itertools
import json
import os
import sys

from perfkit.records import EndState
from perfkit.serving.server import process, routes


class Watched(process.Service):
    """The service as it is; the last one built is remembered."""

    last = None

    def __init__(self, *given):
        super().__init__(*given)
        Watched.last = self


def lose_some(every=10):
    """From now on some connections are closed in the place of an answer."""
    count, answer = itertools.count(1), process.Connection.answer

    def forgetful(connection, reply, *, closes):
        if b'"output"' not in reply or next(count) % every:
            return answer(connection, reply, closes=closes)
        connection._transport.abort()
        return 0

    process.Connection.answer = forgetful


if __name__ == "__main__":
    process.Service = Watched
    if os.environ.get("PERFKIT_LOSES"):
        lose_some()
    if os.environ.get("PERFKIT_TRUSTS_ALL"):
        routes.hmac.compare_digest = lambda came, wanted: True
    code = process.main(sys.argv[1])
    if Watched.last is not None:
        ended = {state.label: Watched.last.ended[state] for state in EndState}
        print(json.dumps({"accepted": Watched.last.accepted, **ended}), flush=True)
    sys.exit(code)
