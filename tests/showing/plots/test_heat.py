"""Does the heat map place every cell of a grid, and say which cells are no results?"""

import pytest

from perfkit.errors import ConfigError
from perfkit.showing.plots.heat import heat_table, plot_heat

NAMES = ["workers", "intra_op_threads"]


@pytest.fixture
def grid(points):
    """Four measured points, standing on a grid of two by two; the last is unsteady."""
    four = points["workers"]
    for point, (workers, threads) in zip(four, [(1, 1), (1, 2), (2, 1), (2, 2)], strict=True):
        point["varied"] = {"workers": workers, "intra_op_threads": threads}
        point["grade"] = "sound"
    four[3] |= {"grade": "unsteady", "reasons": ["latency drifted"]}
    return four


def test_every_cell_has_the_throughput_of_its_point(grid):
    (map_,) = plot_heat(heat_table(grid), NAMES).data
    assert (list(map_.y), list(map_.x)) == (["1", "2"], ["1", "2"])
    assert [list(row) for row in map_.z] == [
        [grid[0]["throughput_rps"]["value"], grid[1]["throughput_rps"]["value"]],
        [grid[2]["throughput_rps"]["value"], grid[3]["throughput_rps"]["value"]],
    ]


def test_a_cell_that_is_no_steady_state_says_so(grid):
    (map_,) = plot_heat(heat_table(grid), NAMES).data
    assert map_.text[1][1].endswith("<br>unsteady")
    assert "unsteady: latency drifted" in map_.hovertext[1][1]
    assert "unsteady" not in map_.text[0][0]


def test_a_void_cell_and_one_that_was_not_measured_have_no_colour(grid):
    grid[1] |= {"grade": "void", "throughput_rps": {"value": None, "low": None, "high": None}}
    (map_,) = plot_heat(heat_table(grid[:3]), NAMES).data
    assert (map_.z[0][1], map_.text[0][1]) == (None, "void")
    assert (map_.z[1][1], map_.hovertext[1][1]) == (None, "not measured")


def test_axes_carry_the_settings_names_and_simulated_figures_say_so(grid):
    for point in grid:
        point["simulated"] = True
    figure = plot_heat(heat_table(grid), NAMES, title="mlp")
    assert (figure.layout.yaxis.title.text, figure.layout.xaxis.title.text) == ("workers", "intra_op_threads")
    assert figure.layout.title.text == "mlp (simulated)"


@pytest.mark.parametrize("varied", [{}, {"workers": 1}, {"workers": 1, "seed": 2, "batch.max_size": 4}])
def test_only_a_grid_of_two_settings_is_a_heat_map(points, varied):
    point = {**points["workers"][0], "varied": varied}
    with pytest.raises(ConfigError, match="a heat map takes a grid of two settings"):
        heat_table([point])
