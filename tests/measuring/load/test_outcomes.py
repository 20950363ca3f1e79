"""Does every status mean one end state?"""

import pytest

from perfkit.measuring.load.outcomes import STATUS_OUTCOMES, error_kind, outcome_of_status
from perfkit.records import EndState


@pytest.mark.parametrize(
    ("statuses", "outcome"),
    [
        ((200, 201, 204), EndState.OK),
        ((429, 503), EndState.REJECTED),
        ((504,), EndState.EXPIRED),
        ((400, 401, 404, 408, 413, 415, 422), EndState.REFUSED),
        ((301, 500, 502, 599), EndState.FAILED),
    ],
)
def test_a_status_stands_for_an_end_state(statuses, outcome):
    assert {outcome_of_status(status) for status in statuses} == {outcome}
    assert {STATUS_OUTCOMES[status] for status in statuses} == {int(outcome)}


def test_an_error_is_named_by_its_status_else_by_what_went_wrong():
    assert error_kind(EndState.REJECTED, 503) == "http_503"
    assert error_kind(EndState.FAILED, 0) == "malformed_reply"
    assert error_kind(EndState.CONNECT_FAILED, 0) == "connect_failed"
