"""How many requests may wait, if none is to wait longer than its caller tolerates?"""

from __future__ import annotations

import math

from perfkit.errors import ConfigError


def queue_depth(rate_rps: float, tolerated_wait_s: float) -> int:
    """The depth L = lambda x W of Little's law (Little 1961), rounded down, at least 1; raises ConfigError.

    `rate_rps` is what the service completes per second at most, `tolerated_wait_s` the longest wait in the queue
    that still makes sense: a request behind L others waits L / rate. Seed 000, section 4.3, has 200 x 0.1 s = 20.
    """
    for name, value in (("rate_rps", rate_rps), ("tolerated_wait_s", tolerated_wait_s)):
        if not 0 < value < math.inf:
            raise ConfigError(f"{name} is {value}; it takes a number above 0")
    return max(1, math.floor(round(rate_rps * tolerated_wait_s, 6)))
