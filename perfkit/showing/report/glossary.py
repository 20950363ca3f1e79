"""What do the report's words mean?"""

from __future__ import annotations

GLOSSARY: tuple[tuple[str, str], ...] = (
    ("latency", "From the instant at which a request was scheduled to be sent until its reply had arrived."),
    ("throughput", "Good replies per second over the measured windows."),
    ("P50, P95, P99", "The latency within which 50, 95 or 99 % of the requests were answered."),
    ("interval", "Where the true figure lies with 95 % confidence, given how many independent requests there were."),
    ("at least", "Too few independent requests for a value: only the lower end is known."),
    ("ledger", "A request's life cut into consecutive stages without a gap; the figure shows each stage's mean."),
    ("queue wait", "Time during which every worker was busy: the stages preprocess_wait and queue_wait."),
    ("batch wait", "Time during which a free worker waited for more requests to fill its batch."),
    ("fill", "Requests in a batch, as a share of the largest batch allowed."),
    ("CPU cores", "CPU time of the server process per second: 1.5 = one and a half cores busy."),
    ("wake lag", "From the end of the device's work until the worker's thread runs again (GIL, scheduler)."),
    ("knee", "The setting from which on more of it gives hardly more throughput; the band is its interval."),
    ("USL", "Universal scalability law: how throughput bends with the number of users, by contention and coherence."),
    ("contention", "The share of a request's work that only one request may do at a time."),
    (
        "coherence",
        "Work that each pair of requests costs each other, such as moving shared data: curves fall again.",
    ),
    ("bounds", "What throughput cannot exceed: users over the time of a lone one, and the busiest station's limit."),
    ("certificate", "All that a run was held against: each figure, its limit with its origin, and what failing costs."),
    ("sound", "Every self-test passed, the run was steady, and every quantile has a value."),
    (
        "short",
        "Sound, but too few requests for some quantile (the table says how long a run it needs), or only one payload.",
    ),
    ("unsteady", "Warm-up, drift or overload in the measured time: shown, but never the best point."),
    ("void", "An instrument failed its self-test: the figures do not count."),
    ("closed loop", "A fixed number of users, each of which sends its next request after the reply. For capacity."),
    ("open loop", "Requests are sent at scheduled instants, however late the replies are. For latency budgets."),
    ("simulated", "Computed by the simulated device, not measured on real hardware."),
    ("CPU, GIL holders, wall", "Flame graphs of running threads, of threads that held the GIL, and of all threads."),
)
