"""Does the service keep to its OpenAPI document whatever a generator thinks of? Schemathesis, over the socket."""

from __future__ import annotations

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.core.failures import FailureGroup

from perfkit.measuring.service import launch
from perfkit.serving.server.openapi import document
from sample_models.noop import Noop

POSITIVE, NEGATIVE = schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE
OPERATIONS = [
    (path, method)
    for path, item in document("noop", Noop.signature)["paths"].items()
    for method in item
    if method != "parameters"
]


@pytest.fixture(scope="module")
def noop():
    """A server of the no-op model; shared by the tests of this module."""
    with launch(model="noop", ledger={"capacity": 4096}) as service:
        yield service


@pytest.fixture(scope="module")
def schema(noop):
    """The document as the server gives it."""
    load_all_checks()
    return schemathesis.openapi.from_url(f"{noop.url}/openapi.json")


def fire(schema, path, method, examples):
    """Send generated requests to one operation, such as fit the document and such as do not."""
    operation = schema[path][method.upper()]
    takes_something = operation.body or operation.path_parameters or operation.headers
    for mode in (POSITIVE, NEGATIVE) if takes_something else (POSITIVE,):
        checks = operation.as_strategy(generation_mode=mode)

        @seed(1)
        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=checks)
        def send(case):
            answer = case.call_and_validate(timeout=20, excluded_checks=excluded(path))
            assert answer.status_code != 500  # described, for models fail; but this one cannot

        send()


def excluded(path):
    """503 and 504 are good answers where they are described; and that the data fills the shape is beyond a schema."""
    names = ["not_a_server_error", "positive_data_acceptance"] if path.endswith("/infer") else ["not_a_server_error"]
    return CHECKS.get_by_names(names)


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_a_few_generated_requests_to_each_operation_are_answered_as_described(schema, path, method):
    fire(schema, path, method, examples=3)


@pytest.mark.slow
@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_many_generated_requests_to_each_operation_are_answered_as_described(schema, path, method):
    fire(schema, path, method, examples=300)


def test_the_check_itself_finds_an_answer_that_is_not_described(noop):
    described = document("noop", Noop.signature)
    described["paths"]["/health/live"]["get"]["responses"] = {"204": {"description": "nothing"}}
    schema = schemathesis.openapi.from_dict(described)
    schema.config.update(base_url=noop.url)
    with pytest.raises(FailureGroup, match="Undocumented status code"):
        fire(schema, "/health/live", "get", examples=1)
