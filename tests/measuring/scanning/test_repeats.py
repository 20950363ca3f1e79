"""Is a service with a cache found out, and an honest one not? With services that really run."""

from types import SimpleNamespace

import pytest

from perfkit.errors import ConfigError
from perfkit.measuring.load.loops import ClosedLoop, OpenLoop
from perfkit.measuring.load.mixes import Catalogue
from perfkit.measuring.scanning import repeats
from perfkit.measuring.scanning.repeats import ORDER, audit_repeats
from perfkit.measuring.service import launch

SECONDS = 3.0


@pytest.fixture
def bodies(tmp_path):
    """Forty different payloads."""
    path = tmp_path / "bodies.jsonl"
    path.write_text("".join(f'{{"input": {number}}}\n' for number in range(100, 140)))
    return str(path)


def audited(model, load):
    parts = []
    with launch(model=model) as service:
        audit = audit_repeats(service, load, SECONDS, parts.append)
    assert parts == list(range(len(ORDER)))
    return audit


@pytest.mark.slow
def test_a_service_that_remembers_its_last_input_is_found_out(planted_models, bodies):
    audit = audited(f"{planted_models}:Remembers", ClosedLoop(payloads=bodies))
    if audit.found is None:
        pytest.skip(f"the machine was too busy: {audit.reason}")
    assert audit.found.verdict == "repeats are faster"
    assert audit.found.ratio > 1.2  # 1.5 by the model, less what a request takes beside it
    document = audit.to_json()
    assert document["covers_entries"] == 40
    assert document["repeated_ratio"]["same"] > document["repeated_ratio"]["different"]


def judged(rates, is_valid=True):
    """The audit of parts with these rates, in the order in which they are measured."""
    grade = SimpleNamespace(reasons=("generator lateness: 20 ms",))
    points = [
        SimpleNamespace(
            simulated=True, requests=10, is_valid=is_valid, grade=grade, throughput=SimpleNamespace(value=rate)
        )
        for rate in rates
    ]
    return repeats._audit(points, Catalogue(bodies=[b"1", b"22", b"333"], sets=[]))


def test_each_part_counts_for_its_own_arm():
    audit = judged([100.0 if arm == "different" else 130.0 for arm in ORDER])
    assert audit.found.verdict == "repeats are faster"
    assert audit.found.ratio == pytest.approx(1.3)
    assert (audit.requests, audit.covers_entries, audit.same_bytes) == ({"different": 60, "same": 60}, 3, 2)


def test_a_busy_machine_voids_the_audit_instead_of_deciding_it():
    audit = judged([None] * len(ORDER), is_valid=False)
    assert audit.to_json()["verdict"] == "void"
    assert audit.reason == "generator lateness: 20 ms"


def test_an_open_loop_and_payloads_that_are_all_the_same_are_refused(planted_models, tmp_path):
    with pytest.raises(ConfigError, match="in a closed loop at one level"):
        audit_repeats(None, OpenLoop(), 1.0)
    with pytest.raises(ConfigError, match="in a closed loop at one level"):
        audit_repeats(None, ClosedLoop(profile="ramp"), 1.0)
    same = tmp_path / "same.jsonl"
    same.write_text('{"input": 1}\n' * 3)
    with pytest.raises(ConfigError, match="are all the same; give different ones"):
        audit_repeats(None, ClosedLoop(payloads=str(same)), 1.0)
