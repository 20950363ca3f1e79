"""Does the tour plan what a newcomer wants to see, each point once?"""

import json

import pytest

from perfkit.errors import ArchiveError, ConfigError
from perfkit.measuring.scanning.tour import (
    BATCH_SIZES,
    FULL,
    IN_FLIGHT,
    SMOKE,
    TEXT_SETS,
    WORKERS,
    open_tour,
    tour_plan,
)


def cells(plan, indices):
    points = [plan.points[index] for index in indices]
    return [(point.settings.workers, point.settings.batch.max_size, point.load.payloads) for point in points]


def test_the_whole_demo_covers_these_workers_and_batches():
    assert (WORKERS, BATCH_SIZES, IN_FLIGHT) == ((1, 2, 4, 8), (1, 2, 4, 8, 16), 32)


def test_a_text_model_is_scanned_over_workers_and_over_batches_of_short_and_of_mixed_texts():
    plan, series = tour_plan("minilm", FULL)
    short, mixed = TEXT_SETS.values()
    assert [(one.label, one.varied) for one in series] == [
        ("short queries", "workers"),
        ("short queries", "batch.max_size"),
        ("mixed lengths", "batch.max_size"),
    ]
    assert cells(plan, series[0].indices) == [(workers, 1, short) for workers in WORKERS]
    assert cells(plan, series[1].indices) == [(2, size, short) for size in BATCH_SIZES]
    assert cells(plan, series[2].indices) == [(2, size, mixed) for size in BATCH_SIZES]
    assert {point.load.concurrency for point in plan.points} == {32}


@pytest.mark.parametrize(("model", "points"), [("minilm", 13), ("noop", 8), ("simulated:s001-a10", 8)])
def test_a_point_that_two_curves_share_is_measured_once(model, points):
    plan, series = tour_plan(model, SMOKE)
    distinct = {(point.settings, point.load.payloads) for point in plan.points}
    assert len(plan.points) == len(distinct) == points
    assert {index for one in series for index in one.indices} == set(range(points))


def test_other_models_have_one_set_of_payloads_their_own():
    plan, series = tour_plan("noop", FULL)
    assert [(one.label, one.varied) for one in series] == [("", "workers"), ("", "batch.max_size")]
    assert {point.load.payloads for point in plan.points} == {None}
    assert plan.points[0].varied == {"workers": 1, "batch.max_size": 1}


def test_a_preset_that_carries_is_toured_staged_since_it_is_to_batch():
    plan, _ = tour_plan("simulated:s003-threads", SMOKE)
    assert {point.settings.topology for point in plan.points} == {"staged"}


def test_the_tour_of_minilm_fits_its_time():
    """At most 3 minutes in all: what is measured may take 135 s, loading, changing and drawing the rest."""
    plan, _ = tour_plan("minilm", FULL)
    assert len(plan.points) * plan.seconds + 3 * FULL.stacks_s + 2 * FULL.final_s <= 135


def test_an_unknown_preset_is_refused_before_anything_starts():
    with pytest.raises(ConfigError, match="s001-a10"):
        tour_plan("simulated:nope", SMOKE)


@pytest.mark.parametrize("content", [None, "no json"])
def test_a_folder_without_a_tour_is_refused_with_what_to_give(tmp_path, content):
    if content:
        (tmp_path / "demo.json").write_text(content)
    with pytest.raises(ArchiveError, match=r"holds no demo .*; give the folder that perfkit demo wrote$"):
        open_tour(tmp_path)


def test_an_index_without_its_scan_is_refused(tmp_path):
    index = {"schema": 1, "series": [], "stacks": None, "stacks_missing": "", "has_final": False}
    (tmp_path / "demo.json").write_text(json.dumps(index))
    with pytest.raises(ArchiveError, match=r"scan\.json"):
        open_tour(tmp_path)
