"""For which reasons is a request rejected, and what is its client told?

The reason is the error's code in the answer. Its status is 503, but 429 for `rate_limited`; Retry-After comes with it.
"""

from __future__ import annotations

REJECTIONS = {
    "queue_full": "the queue is full (setting queue.depth); come back after the time that Retry-After gives",
    "blocked": "the queue stayed full for as long as a request may wait outside it (setting queue.block_s)",
    "dropped": "a newer request took this one's place in the full queue (setting queue.policy = drop_oldest)",
    "discarded": "the queue is full and what does not fit is thrown away (setting queue.policy = discard)",
    "shed": "the deadline would pass before the answer (setting queue.policy = shed); send less, or allow more time",
    "rate_limited": "requests come faster than the agreed rate (setting limits.bucket_rps); "
    "come back after the time that Retry-After gives",
    "concurrency_limit": "as many requests are in hand as may be (settings limits.*); "
    "come back after the time that Retry-After gives",
    "breaker_open": "the model fails too often and is given a rest (settings breaker.*); "
    "come back after the time that Retry-After gives",
    "crash_loop": "threads of the server die again and again; its log says why",
    "device_lost": "the device was lost; the server is started again",
    "few_workers": "fewer model workers are at work than there have to be (setting min_workers)",
    "draining": "the service is shutting down; send the request to another instance",
    "starting": "the service is still loading its model; come back after the time that Retry-After gives",
}
