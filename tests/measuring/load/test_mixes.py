"""Is each payload set used in its proportion, and each of its bodies equally often?"""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfkit.errors import ConfigError
from perfkit.measuring.load.loops import ClosedLoop, load_from_nested, load_to_nested
from perfkit.measuring.load.mixes import PayloadSet, PlacedSet, payload_order, read_catalogue


def placed(sizes, weights):
    firsts = [sum(sizes[:place]) for place in range(len(sizes))]
    return [
        PlacedSet(name=f"set {place}", first=first, count=size, weight=weight, lane=None)
        for place, (first, size, weight) in enumerate(zip(firsts, sizes, weights, strict=True))
    ]


@given(st.lists(st.tuples(st.integers(1, 60), st.floats(0.5, 20)), min_size=2, max_size=4), st.integers(0, 99))
def test_every_block_holds_each_set_in_its_proportion_and_each_body_equally_often(sets, seed):
    sizes, weights = zip(*sets, strict=True)
    order = payload_order(placed(sizes, weights), seed).tolist()
    assert order == payload_order(placed(sizes, weights), seed).tolist()
    owner = [place for place, size in enumerate(sizes) for _ in range(size)]
    for end in range(128, len(order) + 1, 128):
        used = Counter(owner[index] for index in order[:end])
        expected = [end * weight / sum(weights) for weight in weights]
        assert all(abs(used[place] - share) < len(sizes) for place, share in enumerate(expected))
    bodies = Counter(order)
    for place, one in enumerate(placed(sizes, weights)):
        counts = [bodies[index] for index in range(one.first, one.first + one.count)]
        assert max(counts) - min(counts) <= 1, place


def test_a_catalogue_holds_every_set_and_counts_what_is_different(tmp_path):
    (tmp_path / "short.jsonl").write_text('{"input": 1}\n{"input": 2}\n')
    (tmp_path / "long.jsonl").write_text('{"input": 2}\n{"input": 3}\n{"input": 3}\n')
    mix = {
        "short": PayloadSet(file=str(tmp_path / "short.jsonl"), weight=3.0),
        "long": PayloadSet(file=str(tmp_path / "long.jsonl"), lane="offline"),
    }
    catalogue = read_catalogue(mix, tmp_path / "unused")
    assert catalogue.bodies == [b'{"input": 1}', b'{"input": 2}', b'{"input": 2}', b'{"input": 3}', b'{"input": 3}']
    assert catalogue.facts() == {
        "payloads": {
            "count": 5,
            "sets": [
                {"name": "short", "first": 0, "count": 2, "weight": 3.0, "lane": None},
                {"name": "long", "first": 2, "count": 3, "weight": 1.0, "lane": "offline"},
            ],
        },
        "different_payloads": 3,
    }


def test_a_mix_comes_back_from_what_it_is_written_as():
    load = ClosedLoop(mix={"a": PayloadSet(file="a.jsonl", weight=2.0)})
    assert load_from_nested(load_to_nested(load)) == load


def test_a_mix_without_a_file_or_beside_a_single_file_is_refused():
    with pytest.raises(ConfigError, match=r"payload set a has no file; --set load\.mix\.a\.file=FILE"):
        ClosedLoop(mix={"a": PayloadSet()})
    with pytest.raises(ConfigError, match="payloads and mix are both given"):
        ClosedLoop(payloads="x.jsonl", mix={"a": PayloadSet(file="a.jsonl")})
