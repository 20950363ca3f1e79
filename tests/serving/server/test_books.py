"""Are the rows that the control port gives out complete and in order, and do independent counts agree with them?"""

from __future__ import annotations

import threading

import pytest

from perfkit import launch
from perfkit.records import BATCH_INSTANTS, INSTANTS, EndState
from perfkit.serving.instrument.columns import REQUEST_INSTANTS

SETTINGS = {
    "carry": {"topology": "carry"},
    "inline": {},
    "batched": {"batch.max_size": 4, "batch.max_delay_s": 0.001, "workers": 2},
    "preprocess pool": {"preprocess.placement": "threads", "preprocess.threads": 2},
    "postprocess pool": {"postprocess.placement": "threads"},
    "both pools": {
        "preprocess.placement": "threads",
        "postprocess.placement": "threads",
        "postprocess.threads": 2,
        "batch.max_size": 4,
        "workers": 2,
    },
}
ON_CPU = {"h2d_started", "h2d_ended", "d2h_started", "d2h_ended"}  # nothing is copied there


def drive(service, dial, *, clients, requests, payload=None):
    """So many clients send so many requests each, one after the other; each with its own number."""

    def ask_on(wire, client):
        for number in range(requests):
            wire.post({"input": payload}, f"Perfkit-Id: {client * requests + number + 1}")
            assert wire.answer().status == 200

    threads = [threading.Thread(target=ask_on, args=(dial(service), client)) for client in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def read(service, since):
    requests = service.ledger("requests", since["requests"]).to_pylist()
    batches = service.ledger("batches", since["batches"]).to_pylist()
    return requests, {batch["batch_id"]: batch for batch in batches}


def instants_of(request, batch):
    """The row's instants in the ledger's order, from both books; 0 = absent."""
    cells = {name: request[f"{name}_ns"] for name in REQUEST_INSTANTS}
    cells |= {name: batch[f"{name}_ns"] for name in BATCH_INSTANTS}
    return [(name, cells[name]) for name in INSTANTS if name in cells]


@pytest.mark.parametrize("kind", SETTINGS)
def test_rows_are_complete_in_order_and_as_many_as_the_requests(lab, dial, kind):
    lab.configure(SETTINGS[kind])
    since = lab.stats()["ledger"]
    drive(lab, dial, clients=4, requests=25)
    requests, batches = read(lab, since)
    assert sorted(row["request_id"] for row in requests) == list(range(1, 101))
    absent = {*ON_CPU, "model_loaded", *(name for name in INSTANTS if name.endswith(("_reached", "_returned")))}
    if "postprocess" not in kind and "both" not in kind:
        absent.add("postprocess_queued")
    for row in requests:
        instants = instants_of(row, batches[row["batch_id"]])
        assert {name for name, at_ns in instants if not at_ns} == absent
        present = [at_ns for _, at_ns in instants if at_ns]
        assert present == sorted(present)
        assert (row["end_state"], row["status"]) == (EndState.OK, 200)
        assert row["preprocess_thread"] > 0
        assert row["postprocess_thread"] > 0
    assert sum(batch["size"] for batch in batches.values()) == 100
    assert max(batch["size"] for batch in batches.values()) <= SETTINGS[kind].get("batch.max_size", 1)


def test_the_latency_that_the_connection_takes_by_itself_agrees_with_the_ledger(lab, dial):
    since = lab.stats()["ledger"]
    drive(
        lab, dial, clients=8, requests=20, payload={"sleep_s": 0.002}
    )  # so much that a pause between two stamps is little
    requests, _ = read(lab, since)
    of_ledger_ns = sum(row["replied_ns"] - row["accepted_ns"] for row in requests)
    of_connection_ns = sum(row["middleware_ns"] for row in requests)
    assert of_connection_ns >= of_ledger_ns, "the connection sees a request first and lets it go last"
    assert of_connection_ns == pytest.approx(of_ledger_ns, rel=0.05)


def test_the_gauge_s_area_is_the_sum_of_the_latencies_that_the_connections_take(lab, dial, eventually):
    """Little's law as an identity, between two instants at which the service is empty; the ledger has no part in it."""
    eventually(lambda: lab.stats()["gauge"]["in_flight"] == 0)
    before = lab.stats()
    drive(lab, dial, clients=5, requests=40)
    after = lab.stats()
    requests, _ = read(lab, before["ledger"])
    assert after["gauge"]["in_flight"] == 0
    area_ns = after["gauge"]["area_ns"] - before["gauge"]["area_ns"]
    assert area_ns == sum(row["middleware_ns"] for row in requests)


def test_counters_agree_with_the_rows(lab, dial):
    before = lab.stats()
    wire = dial(lab)
    for document in ({"input": 1}, {"inputs": [1, 2]}, {"input": {"at": "predict", "do": "raise"}}, {"wrong": 1}):
        wire.post(document)
        wire.answer()
    after = lab.stats()
    requests, _ = read(lab, before["ledger"])
    ended = [EndState(row["end_state"]).label for row in requests]
    assert sorted(ended) == ["failed", "ok", "ok", "ok", "refused"]
    grown = {name: after["counters"][name] - before["counters"][name] for name in after["counters"]}
    assert {name: count for name, count in grown.items() if count} == {
        "accepted": 5,
        "ok": 3,
        "failed": 1,
        "refused": 1,
    }


def test_a_request_that_was_not_served_keeps_what_it_went_through(lab, dial):
    since = lab.stats()["ledger"]
    wire = dial(lab)
    wire.post({"wrong": 1}, "Perfkit-Id: 901")
    wire.answer()
    wire.post({"input": {"at": "preprocess", "do": "refuse"}}, "Perfkit-Id: 902")
    wire.answer()
    malformed, refused = read(lab, since)[0]
    present = [
        (row["request_id"], row["status"], {name for name in REQUEST_INSTANTS if row[f"{name}_ns"]})
        for row in (malformed, refused)
    ]
    assert present == [
        (901, 400, {"accepted", "parsed", "replied"}),
        (
            902,
            422,
            {"accepted", "parsed", "preprocess_queued", "preprocess_started", "preprocess_ended", "replied"},
        ),
    ]


def test_a_batch_that_failed_and_its_halves_are_all_in_the_book(lab, dial):
    lab.configure({"batch.max_size": 4, "batch.max_delay_s": 5.0})
    since = lab.stats()["ledger"]
    wire = dial(lab)
    wire.post({"inputs": [1, {"at": "predict", "do": "raise"}, 3, 4]})
    assert wire.answer().status == 500
    requests, batches = read(lab, since)
    assert [batch["size"] for batch in batches.values()] == [4, 2, 1, 1, 2]
    final = [batches[row["batch_id"]]["size"] for row in requests]
    assert final == [1, 1, 2, 2], "each row names the call that answered it"


def test_rows_that_nobody_fetched_in_time_are_reported_as_lost(models_on_path, dial):
    with launch(model="noop", ledger={"capacity": 1024}) as service:
        wire = dial(service)
        for _ in range(6):
            wire.post({"inputs": [1] * 250})
            assert wire.answer().status == 200
        table = service.ledger("requests", 0)
        metadata = {name.decode(): int(value) for name, value in table.schema.metadata.items()}
        assert (table.num_rows, metadata) == (1024, {"next": 1500, "lost": 476})
        rest = service.ledger("requests", 1500)
        assert (rest.num_rows, {k.decode(): int(v) for k, v in rest.schema.metadata.items()}) == (
            0,
            {"next": 1500, "lost": 0},
        )


def test_without_stamps_requests_are_served_and_no_rows_are_kept(dial):
    with launch(model="noop", ledger={"stamps": False}) as service:
        wire = dial(service)
        for _ in range(5):
            wire.post({"input": 1}, "Perfkit-Timing: 1")
            answer = wire.answer()
            assert (answer.status, "server-timing" in answer.headers) == (200, False)
        assert (service.ledger("requests", 0).num_rows, service.ledger("batches", 0).num_rows) == (0, 0)
        stats = service.stats()
        empty = {
            "requests": 0,
            "batches": 0,
            "is_stamped": False,
            "capacity": 1 << 17,
            "open_requests": 0,
            "open_batches": 0,
        }
        assert (stats["counters"]["ok"], stats["ledger"]) == (5, empty)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/ledger?table=rumours", "table is 'rumours'; it takes requests or batches"),
        ("/ledger?since=-1", "since is '-1'; it takes a row number, 0 or more"),
        ("/ledger?since=%C2%B2", "since is '²'; it takes a row number, 0 or more"),
        ("/ledger?since=" + "9" * 30, f"since is '{'9' * 30}'; it takes a row number, 0 or more"),
    ],
)
def test_a_wrong_question_about_the_ledger_is_refused(lab, dial, path, message):
    wire = dial(lab.control)
    wire.get(path)
    answer = wire.answer()
    assert (answer.status, answer.json["error"]["message"]) == (400, message)
