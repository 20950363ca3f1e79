"""Are the statistics the ledger's own figures, however often somebody asks? Ledgers filled by hand."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace

from perfkit.clock import ManualClock
from perfkit.records import STAGES, EndState
from perfkit.serving.instrument import columns as c
from perfkit.serving.server.oip.statistics import GROUPS, Statistics
from perfkit.serving.server.plant import Books
from perfkit.settings.server import ServerSettings
from perfkit.settings.surroundings import LedgerSettings

NOTHING = {"count": 0, "ns": 0}
OFFSETS_NS = {
    "batch_sealed": 0,
    "collated": 1,
    "h2d_started": 3,
    "h2d_ended": 6,
    "compute_started": 10,
    "compute_ended": 15,
    "d2h_started": 21,
    "d2h_ended": 28,
    "woken": 36,
}


class Records:
    """Two ledgers, and rows that are written into them as the server would."""

    def __init__(self, *, stamps=True, capacity=1024):
        self.books = Books(LedgerSettings(capacity=capacity, stamps=stamps))
        self.statistics = Statistics(self.books.requests, self.books.batches, ManualClock(10**9))
        self.service = SimpleNamespace(settings=ServerSettings(model="noop"))

    def batch(self, number, size, *, start_ns, failed=False):
        """A call of the model that was sealed at `start_ns` and came as far as OFFSETS_NS says."""
        cells, row = self.books.batches.cells, self.books.batches.open()
        cells[row + c.B_BATCH_ID], cells[row + c.B_SIZE] = number, size
        for name, offset_ns in OFFSETS_NS.items():
            if not failed or name == "batch_sealed":
                cells[row + 1 + c.BATCH_COLUMNS.index(f"{name}_ns")] = start_ns + offset_ns
        self.books.batches.close(row)

    def request(self, batch, *, accepted_ns, sealed_ns, end_state=EndState.OK):
        """A request that was accepted, queued 10 ns later, and replied to 100 ns after its batch was sealed."""
        cells, row = self.books.requests.cells, self.books.requests.open()
        values = {
            c.BATCH_ID: batch,
            c.END_STATE: end_state,
            c.ACCEPTED: accepted_ns,
            c.PARSED: accepted_ns + 10,
            c.REPLIED: sealed_ns + 100,
        }
        if end_state is EndState.OK:
            values |= {
                c.BATCH_JOINED: sealed_ns - 4,
                c.POSTPROCESS_STARTED: sealed_ns + 60,
                c.SERIALISED: sealed_ns + 90,
            }
        for column, value in values.items():
            cells[row + column] = value
        self.books.requests.close(row)

    def told(self):
        (model,) = self.statistics.document(self.service)["model_stats"]
        return model


def test_every_stage_between_parse_and_reply_is_in_exactly_one_group():
    grouped = [stage for stages in GROUPS.values() for stage in stages]
    assert sorted(grouped) == sorted(set(STAGES) - {"send", "accept", "parse", "reply", "receive"})


def test_nothing_served_is_all_zero():
    model = Records().told()
    assert (model["inference_count"], model["execution_count"], model["last_inference"]) == (0, 0, 0)
    assert set(map(str, model["inference_stats"].values())) == {str(NOTHING)}
    assert model["batch_stats"] == []


def test_the_groups_hold_the_stages_of_each_request_and_of_each_batch():
    records = Records()
    records.batch(1, 2, start_ns=1000)
    for _ in range(2):
        records.request(1, accepted_ns=900, sealed_ns=1000)
    model = records.told()
    assert model["inference_stats"] == {
        "success": {"count": 2, "ns": 2 * 200},
        "fail": NOTHING,
        "queue": {"count": 2, "ns": 2 * (86 + 4 + 24)},  # joined, sealed, and from woken to postprocess
        "compute_input": {"count": 2, "ns": 2 * 6},
        "compute_infer": {"count": 2, "ns": 2 * 9},
        "compute_output": {"count": 2, "ns": 2 * (21 + 30)},
        "cache_hit": NOTHING,
        "cache_miss": NOTHING,
    }
    assert model["batch_stats"] == [
        {
            "batch_size": 2,
            "compute_input": {"count": 1, "ns": 6},
            "compute_infer": {"count": 1, "ns": 9},
            "compute_output": {"count": 1, "ns": 21},
        }
    ]
    assert (model["inference_count"], model["execution_count"]) == (2, 1)


def test_figures_grow_from_asking_to_asking_and_a_request_may_close_long_after_its_batch():
    records = Records()
    records.batch(1, 2, start_ns=1000)
    records.request(1, accepted_ns=900, sealed_ns=1000)
    assert records.told()["inference_stats"]["queue"]["count"] == 1
    records.batch(2, 1, start_ns=2000)
    records.request(2, accepted_ns=1900, sealed_ns=2000)
    assert records.told() == records.told()
    records.request(1, accepted_ns=900, sealed_ns=1000)
    model = records.told()
    assert (model["inference_stats"]["queue"]["count"], model["execution_count"]) == (3, 2)
    assert [stats["batch_size"] for stats in model["batch_stats"]] == [1, 2]


def test_what_failed_counts_as_such_and_a_failed_call_is_no_execution():
    records = Records()
    records.batch(1, 2, start_ns=1000, failed=True)
    records.request(1, accepted_ns=900, sealed_ns=1000, end_state=EndState.FAILED)
    records.request(0, accepted_ns=900, sealed_ns=1000, end_state=EndState.REJECTED)
    model = records.told()
    assert model["inference_stats"]["fail"] == {"count": 2, "ns": 400}
    assert (model["inference_stats"]["success"], model["execution_count"]) == (NOTHING, 0)


def test_the_last_inference_is_told_by_the_calendar():
    records = Records()
    records.batch(1, 1, start_ns=1000)
    records.request(1, accepted_ns=900, sealed_ns=1000)
    second_ago_ms = datetime.now(UTC).timestamp() * 1000 - 1000
    assert abs(records.told()["last_inference"] - second_ago_ms) < 60_000


def test_without_stamps_nothing_is_claimed():
    records = Records(stamps=False)
    records.batch(1, 1, start_ns=1000)
    records.request(1, accepted_ns=900, sealed_ns=1000)
    assert records.told()["inference_stats"]["success"] == NOTHING


def test_rows_that_were_overwritten_are_missing_from_count_and_time_alike():
    records = Records()
    for number in range(1, 1500):
        records.batch(number, 1, start_ns=1000 * number)
        records.request(number, accepted_ns=1000 * number - 100, sealed_ns=1000 * number)
    stats = records.told()["inference_stats"]
    assert stats["success"] == {"count": 1024, "ns": 1024 * 200}
    assert stats["queue"]["count"] == 1024
