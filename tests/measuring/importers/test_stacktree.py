"""Do the paths of a profile weigh what its samples weigh, however many there are?"""

from perfkit.measuring.importers import stacktree
from perfkit.measuring.importers.flame import foreign_flame
from perfkit.measuring.importers.imported import Profile
from perfkit.measuring.importers.stacktree import FlameTree, TreeBuilder


def built(*stacks):
    builder = TreeBuilder()
    for thread, frames, weight in stacks:
        builder.add(thread, frames, weight)
    return builder.tree()


def test_equal_paths_share_their_nodes():
    assert built(("main", ["a", "b"], 2.0), ("main", ["a", "c"], 3.0), ("io", ["a"], 5.0)) == FlameTree(
        names=("main", "a", "b", "c", "io"),
        threads=("main", "io"),
        parent=(-1, 0, 1, 1, -1, 4),
        name=(0, 1, 2, 3, 4, 1),
        own=(0.0, 0.0, 2.0, 3.0, 0.0, 5.0),
        thread=(0, 0, 0, 0, 1, 1),
    )


def test_a_profile_of_nothing_has_no_tree():
    assert built() is None
    assert built(("main", [], 0.0)) is None


def test_past_the_limit_paths_are_cut_and_their_weight_stays(monkeypatch):
    monkeypatch.setattr(stacktree, "_LIMIT", 100)
    monkeypatch.setattr(stacktree, "_THREAD_LIMIT", 3)
    tree = built(*((f"t{n}", [f"f{n}", f"g{n}"], 1.0) for n in range(500)))
    assert tree.threads == ("t0", "t1", "t2", "(other threads)")
    assert (len(tree.parent), sum(tree.own)) == (100, 500.0)


def test_seconds_are_drawn_in_microseconds_and_counts_as_they_are():
    tree = built(("main", ["a"], 0.25))
    parts = {"name": "all", "total": 0.25, "samples": 1, "top": ()}
    profiles = [Profile(**parts, unit="s", tree=tree), Profile(**parts, unit="samples", tree=tree)]
    recordings = foreign_flame(profiles, "x")["recordings"]
    assert [(one["unit"], one["self"]) for one in recordings] == [("µs", [0.0, 250_000.0]), ("samples", [0.0, 0.25])]
    assert foreign_flame([Profile(**parts, unit="s")], "x") is None
