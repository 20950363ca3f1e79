"""What does `import perfkit` offer, and can each name be had?"""

from __future__ import annotations

from pathlib import Path

import pytest

import perfkit

PACKAGE = Path(perfkit.__file__).parent


def test_the_public_names_are_few_and_sorted():
    assert perfkit.__all__ == sorted(set(perfkit.__all__))
    assert len(perfkit.__all__) <= 15


def test_no_public_name_is_also_a_module_or_a_folder():
    """Importing a submodule would replace the name in the package."""
    inside = {path.stem for path in PACKAGE.iterdir() if not path.name.startswith("_")}
    assert inside & set(perfkit.__all__) == set()


@pytest.mark.parametrize("name", perfkit.__all__)
def test_each_public_name_can_be_had_and_is_documented(name):
    value = getattr(perfkit, name)
    assert (value.__name__, bool(value.__doc__)) == (name, True)


def test_a_wrong_name_is_refused_as_any_module_does():
    with pytest.raises(AttributeError, match="module 'perfkit' has no attribute 'scann'"):
        perfkit.scann  # noqa: B018
    assert set(perfkit.__all__) <= set(dir(perfkit))
