"""Can a load be set, varied, written down and read back like any other setting?"""

import pytest

from perfkit import fields
from perfkit.errors import ConfigError
from perfkit.measuring.load.loops import ClosedLoop, OpenLoop, load_from_nested, load_to_nested


@pytest.mark.parametrize(
    "load", [ClosedLoop(concurrency=8, think_time_s=0.5), OpenLoop(rate_rps=20, arrivals="constant")]
)
def test_a_load_comes_back_from_its_nested_form(load):
    nested = load_to_nested(load)
    assert nested["loop"] == load.loop
    assert load_from_nested(nested) == load


def test_a_load_field_is_varied_by_name():
    values = [fields.parse("concurrency", text, ClosedLoop) for text in ("1", "4", "8")]
    loads = [fields.replace(ClosedLoop(keep_alive=False), {"concurrency": value}) for value in values]
    assert loads == [ClosedLoop(concurrency=count, keep_alive=False) for count in (1, 4, 8)]
    assert {"rate_rps", "arrivals", "keep_alive"} <= {name for name, _, _ in fields.leaves(OpenLoop)}


@pytest.mark.parametrize(
    ("record", "values", "message"),
    [
        (ClosedLoop, {"concurrency": 0}, "concurrency is 0; it takes a whole number from 1 to 10000"),
        (ClosedLoop, {"think": "uniform"}, "think is 'uniform'; it takes one of constant, exponential"),
        (OpenLoop, {"rate_rps": -1.0}, "rate_rps is -1.0; it takes a number from 0.001 to 1e+06"),
    ],
)
def test_a_load_out_of_range_is_refused(record, values, message):
    with pytest.raises(ConfigError) as caught:
        record(**values)
    assert str(caught.value) == message


def test_an_unknown_loop_is_refused():
    with pytest.raises(ConfigError, match="loop is 'burst'; it takes one of closed, open"):
        load_from_nested({"loop": "burst"})
