"""Is each kind of bad run graded as it should be, and are good ones left alone? Seeded runs in virtual time.

The tables are made from a single-server queue (Lindley's recursion, vectorised) and go through the whole analysis, as
a measured run does. Default: a few of each kind; the full size (`slow`) takes 100 of each and prints the shares.
One real run of each kind, over sockets, is in `tests/measuring/test_bad_runs.py`.
"""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from perfkit.measuring.analysis.rundata import RunData
from perfkit.measuring.analysis.summary import summarise
from perfkit.records import BATCH_INSTANTS, INSTANTS

START_NS = 7_000_000_000_000_000
STEP_NS = 10_000
SERVICE_S = 0.01
LEAST_RIGHT = 0.95
MOST_DEGRADED = 0.05
FULL = 100
CLIENT_SIDE = ("model_queued", "parsed", "accepted", "sent")
AFTER = ("received", "replied", "serialised", "postprocess_ended", "woken")
BEFORE_COMPUTE = ("batch_sealed", "collated", "h2d_started", "h2d_ended", "compute_started")


@dataclasses.dataclass(kw_only=True)
class Served:
    """Arrivals (s), when the generator took them up, and each one's service time, before the queue serves them."""

    scheduled: np.ndarray
    sent: np.ndarray
    service: np.ndarray
    users: int | None = None


def in_queue(arrived, service):
    """Start and end of each service at one worker, first come first served."""
    ends = np.cumsum(service) + np.maximum.accumulate(arrived - np.cumsum(service) + service)
    return np.maximum(arrived, np.concatenate([[0.0], ends[:-1]])), ends


def open_arrivals(rng, count=6_000, load=0.4):
    """Poisson arrivals, taken up some 50 µs late, exponential service above the 50 µs of the fixed steps."""
    scheduled = np.cumsum(rng.exponential(SERVICE_S / load, count))
    late = rng.exponential(50e-6, count)
    return Served(scheduled=scheduled, sent=scheduled + late, service=1e-4 + rng.exponential(SERVICE_S, count))


def closed_arrivals(rng, count=6_000, users=4):
    """A closed loop in front of one worker: whoever is answered sends again."""
    service = np.maximum(1e-3, rng.normal(SERVICE_S, 0.1 * SERVICE_S, count))
    scheduled = np.concatenate([np.full(users, 1e-3), 1e-3 + np.cumsum(service)[: count - users]])
    return Served(scheduled=scheduled, sent=scheduled.copy(), service=service, users=users)


def ns(seconds):
    return START_NS + np.round(np.asarray(seconds) * 1e9).astype(np.int64)


def stamps(served):
    """Every instant of every request in nanoseconds; the fixed steps before the queue take 10 µs each."""
    lead_s = len(CLIENT_SIDE[1:]) * STEP_NS / 1e9
    queued = np.sort(served.sent + lead_s)
    start, end = in_queue(queued, served.service)
    at = {name: ns(queued) - back * STEP_NS for back, name in enumerate(CLIENT_SIDE)}
    at["scheduled"] = np.minimum(ns(served.scheduled), at["sent"])
    at["worker_free"] = ns(np.concatenate([[0.0], end[:-1]]))
    at["batch_joined"] = np.maximum(ns(queued), at["worker_free"])
    at |= dict.fromkeys(BEFORE_COMPUTE, ns(start))
    at |= {name: ns(end) - back * STEP_NS for back, name in enumerate(AFTER)}
    at["compute_ended"] = at["d2h_ended"] = at["postprocess_started"] = at["woken"]
    return at


def nullable(columns):
    return pd.DataFrame(
        {
            name: pd.array(values, dtype="Int64") if values.dtype.kind == "i" else values
            for name, values in columns.items()
        }
    )


def tables(served, rng):
    at, count = stamps(served), len(served.scheduled)
    numbers = np.arange(count)
    absent = {f"{name}_ns": pd.array([pd.NA] * count, dtype="Int64") for name in INSTANTS if name not in at}
    requests = nullable({f"{name}_ns": values for name, values in at.items() if name in INSTANTS}).assign(**absent)
    same = {
        "request_id": numbers,
        "round": np.zeros(count, int),
        "batch_id": numbers,
        "payload": rng.integers(0, 16, count),
    }
    requests = requests.assign(**{name: pd.array(values, dtype="Int64") for name, values in same.items()})
    requests = requests.assign(end_state="ok", error="", status=pd.array(np.full(count, 200), dtype="Int64"))
    batches = requests[["batch_id", "round", *(f"{name}_ns" for name in BATCH_INSTANTS)]].copy()
    fixed = {"model_thread": 100, "size": 1, "units": 8, "padded_units": 8, "cpu_ns": 0, "clamped_ns": 0}
    batches = batches.assign(**{name: pd.array(np.full(count, value), dtype="Int64") for name, value in fixed.items()})
    return requests, batches.assign(worker_free_ns=pd.array(at["worker_free"], dtype="Int64"))


def gauges(requests, readings=40):
    """The integral of the requests in the server, read at even instants from before the first to after the last."""
    accepted, replied = (np.sort(requests[f"{name}_ns"].to_numpy(dtype=np.int64)) for name in ("accepted", "replied"))
    found = []
    for at in np.linspace(accepted[0] - 1_000_000, replied[-1] + 1_000_000, readings).astype(np.int64):
        area = int((np.clip(replied, None, at) - np.clip(accepted, None, at)).sum())
        inside = int((accepted <= at).sum() - (replied <= at).sum())
        found.append({"time_ns": int(at), "round": 0, "in_flight": inside, "area_ns": area, "queued": 0})
    return found


def run_of(served, rng, cpu_ratio=0.1):
    """The run as the archive holds it: the server on core 0, the generator on core 1."""
    requests, batches = tables(served, rng)
    count = len(requests)
    started, ended = START_NS, int(requests["scheduled_ns"].max()) + 1_000_000
    late = (requests["sent_ns"] - requests["scheduled_ns"]).to_numpy(dtype=float) / 1e9
    zero = dict.fromkeys(("accepted", "ok", "rejected", "expired", "cancelled", "refused", "failed", "ledger_rows"), 0)
    zero["ledger_dropped"] = 0
    counted = zero | {"accepted": count, "ok": count, "ledger_rows": count}
    wall_s = (ended - started) / 1e9
    report = {"round": 0, "scheduled": count, "sent": count, "wall_s": wall_s, "cpu_s": cpu_ratio * wall_s, "cpus": [1]}
    closed = {"loop": "closed", "concurrency": served.users, "think_time_s": 0.0}
    rate = {"loop": "open", "arrivals": "poisson", "rate_rps": count / wall_s}
    return RunData(
        requests=requests,
        batches=batches,
        series=pd.DataFrame({"time_ns": [], "source": [], "name": [], "unit": [], "value": []}),
        rounds=[{"index": 0, "started_ns": started, "ended_ns": ended}],
        gauges=gauges(requests),
        counters=[{"round": 0, "before": zero, "after": counted}],
        generator_reports=[report | {"lateness_p99_s": float(np.quantile(late, 0.99)), "different_payloads": 16}],
        load=closed if served.users else rate,
        settings={"model": "simulated:queue", "device": "cpu", "workers": 1, "batch": {"max_size": 1}},
        simulated=True,
        usable_cores=2,
        profiled=False,
        server_cpus=(0,),
        started_ns=started,
        ended_ns=ended,
    )


def clean(rng):
    return run_of(open_arrivals(rng) if rng.random() < 0.5 else closed_arrivals(rng), rng)


def saturated_client(rng):
    """Sending takes the generator 0.9 to 1.3 times the gap between requests."""
    served = open_arrivals(rng)
    gap = SERVICE_S / 0.4
    busy = rng.uniform(0.9, 1.3)
    _, served.sent = in_queue(served.scheduled, rng.exponential(busy * gap, len(served.scheduled)))
    return run_of(served, rng, cpu_ratio=min(1.0, busy))


def stretched(rng, shape):
    """Service stretched along the run; `shape` maps 0 to 1 of it to a factor."""
    served = open_arrivals(rng) if rng.random() < 0.5 else closed_arrivals(rng)
    along = np.arange(len(served.scheduled)) / len(served.scheduled)
    service = served.service * shape(along)
    if served.users:
        scheduled = np.concatenate([np.full(served.users, 1e-3), 1e-3 + np.cumsum(service)[: -served.users]])
        served = Served(scheduled=scheduled, sent=scheduled.copy(), service=service, users=served.users)
    return run_of(dataclasses.replace(served, service=service), rng)


def cold_start(rng):
    """Still 1.5 to 2.5 times as slow in the middle of the run, behind which no warm-up is left out."""
    middle, constant = rng.uniform(0.5, 1.5), rng.uniform(0.2, 0.35)
    return stretched(rng, lambda along: 1 + middle * np.exp((0.5 - along) / constant))


def mild_cold_start(rng):
    """Twice to five times as slow at first; up to a fifth is left in the middle, which may drown in the noise."""
    factor, constant = rng.uniform(1.0, 4.0), rng.uniform(0.17, 0.33)
    return stretched(rng, lambda along: 1 + factor * np.exp(-along / constant))


def drift(rng):
    """From as planned to 1.3 to 1.8 times as slow."""
    most = rng.uniform(0.3, 0.8)
    return stretched(rng, lambda along: 1 + most * along)


def too_few(rng):
    """Fewer than the 473 that P99 needs at least, and enough to look for a warm-up."""
    count = int(rng.integers(60, 460))
    return run_of(open_arrivals(rng, count) if rng.random() < 0.5 else closed_arrivals(rng, count), rng)


def identical_payloads(rng):
    run = clean(rng)
    if rng.random() < 0.5:
        reports = [{**report, "different_payloads": 1} for report in run.generator_reports]
        return dataclasses.replace(run, generator_reports=reports)
    return dataclasses.replace(
        run, requests=run.requests.assign(payload=pd.array([3] * len(run.requests), dtype="Int64"))
    )


def stale_gauge(rng):
    """From a random reading on the gauge shows what it showed then."""
    run = clean(rng)
    since = int(rng.integers(1, len(run.gauges) - 2))
    while run.gauges[since]["in_flight"] == 0:
        since = since - 1 if since > 1 else len(run.gauges) - 2
    held = {name: run.gauges[since][name] for name in ("area_ns", "in_flight")}
    return dataclasses.replace(run, gauges=[*run.gauges[:since], *({**one, **held} for one in run.gauges[since:])])


def on_the_servers_core(rng):
    run = clean(rng)
    reports = [{**report, "cpus": [0]} for report in run.generator_reports]
    return dataclasses.replace(run, generator_reports=reports)


BAD = {
    saturated_client: ("void", {"generator lateness", "generator CPU"}),
    cold_start: ("unsteady", {"warm-up", "steps", "drift", "windows: throughput", "windows: P50", "windows: P99"}),
    mild_cold_start: ("unsteady", {"warm-up", "steps", "drift", "windows: throughput", "windows: P50", "windows: P99"}),
    too_few: ("short", {"P95 sample", "P99 sample", "run length"}),
    drift: ("unsteady", {"steps", "drift", "windows: throughput", "windows: P50", "windows: P99"}),
    identical_payloads: ("short", {"payloads"}),
    stale_gauge: ("void", {"gauge fresh"}),
    on_the_servers_core: ("void", {"generator core"}),
}
"""The grade that each kind should get, and the entries of the certificate of which one must have failed."""
COLD = (cold_start, mild_cold_start)
GATED = [make for make in BAD if make is not mild_cold_start]


def is_right(make, point, number):
    """Whether a bad run got its grade for its reason; a cold start may also be left out, if the rest is right."""
    grade, entries = BAD[make]
    failed = {one.name for one in point.certificate.entries if one.status == "fail"}
    if point.grade.label == grade and failed & entries:
        return True
    return make in COLD and point.grade.label in ("sound", "short") and is_as_warm(point, number)


def is_as_warm(point, number):
    """Whether P50 is that of the same run without its cold start, within the 10 % that a drift may have."""
    rng = np.random.default_rng(number)
    rng.uniform(size=2)  # what the cold start drew
    warm = summarise(stretched(rng, np.ones_like)).latency["p50"].value
    return abs(point.latency["p50"].value / warm - 1) <= 0.10


def share_right(make, count, first):
    """How many of the seeded runs are graded right, how many got which grade, and why the others did."""
    points = [summarise(make(np.random.default_rng(number))) for number in range(first, first + count)]
    right = [is_right(make, point, number) for number, point in enumerate(points, first)]
    labels = pd.Series([point.grade.label for point in points]).value_counts().to_dict()
    return sum(right), labels, [one.grade.reasons[:1] for one, good in zip(points, right, strict=True) if not good]


def degraded(count, first):
    """How many clean runs got which grade, and why those that are not sound are not."""
    found = [summarise(clean(np.random.default_rng(number))).grade for number in range(first, first + count)]
    labels = pd.Series([one.label for one in found]).value_counts().to_dict()
    return labels, sorted(one.reasons[0] for one in found if one.reasons)


@pytest.mark.parametrize("make", GATED, ids=lambda make: make.__name__)
def test_a_bad_run_is_graded_as_it_should_be(make):
    right, _, wrong = share_right(make, 3, first=0)
    assert right >= 2, wrong


def test_clean_runs_are_sound():
    labels, reasons = degraded(8, first=0)
    assert labels.get("sound", 0) >= 7, reasons


def test_a_run_that_lacks_the_fault_is_not_called_faulty():
    """The count of right ones can fail: clean runs are none of the kinds."""
    points = [summarise(clean(np.random.default_rng(number))) for number in range(3)]
    assert not any(is_right(make, point, 0) for make in BAD if make not in COLD for point in points)


@pytest.mark.slow
@pytest.mark.parametrize("make", BAD, ids=lambda make: make.__name__)
def test_a_hundred_bad_runs(make):
    right, labels, wrong = share_right(make, FULL, first=1_000)
    print(f"\n{make.__name__} (wanted {BAD[make][0]}): {right} of {FULL} right, grades {labels}, wrong {wrong}", end="")
    assert make not in GATED or right >= LEAST_RIGHT * FULL


@pytest.mark.slow
def test_two_hundred_clean_runs():
    labels, reasons = degraded(2 * FULL, first=2_000)
    print(f"\nclean: {labels}; degraded by {reasons}", end="")
    assert 2 * FULL - labels.get("sound", 0) <= MOST_DEGRADED * 2 * FULL
