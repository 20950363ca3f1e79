"""What did a server process itself count, until its very end? Runs it, and prints its counters when it has ended.

With PERFKIT_LOSES, PERFKIT_LEAKS, PERFKIT_TRUSTS_ALL or PERFKIT_CHOKES set it breaks a promise, which a test has to
notice.
"""

from __future__ import annotations

import itertools
import json
import os
import sys

from perfkit.records import EndState
from perfkit.serving.server import process, router
from perfkit.serving.server.pipeline import Pipeline


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


def choke():
    """From now on a request that names its own number is too much."""
    handle = router.Router.handle

    def fragile(found, request):
        if b"perfkit-id" in request.headers:
            raise ValueError("too much")
        handle(found, request)

    router.Router.handle = fragile


def leak_some(every=5):
    """From now on some requests whose client left are taken from the queue and never ended."""
    count, cancel = itertools.count(1), Pipeline.cancel

    def forgetful(pipeline, job):
        return cancel(pipeline, job) and next(count) % every != 0

    Pipeline.cancel = forgetful


if __name__ == "__main__":
    process.Service = Watched
    if os.environ.get("PERFKIT_LEAKS"):
        leak_some()
    if os.environ.get("PERFKIT_LOSES"):
        lose_some()
    if os.environ.get("PERFKIT_TRUSTS_ALL"):
        router.hmac.compare_digest = lambda came, wanted: True
    if os.environ.get("PERFKIT_CHOKES"):
        choke()
    code = process.main(sys.argv[1])
    if Watched.last is not None:
        ended = {state.label: Watched.last.ended[state] for state in EndState}
        print(json.dumps({"accepted": Watched.last.accepted, **ended}), flush=True)
    sys.exit(code)
