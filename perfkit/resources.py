"""Where does perfkit's data lie: beside a checkout, or inside an installed wheel?"""

from __future__ import annotations

from pathlib import Path

from perfkit.errors import EnvironmentLacks

_PACKAGE = Path(__file__).resolve().parent
_PLACES = (_PACKAGE.parent / "data", _PACKAGE / "data")


def data_path(*parts: str) -> Path:
    """Path of a file or folder under `data/`; raises EnvironmentLacks when it is not there."""
    for place in _PLACES:
        path = place.joinpath(*parts)
        if path.exists():
            return path
    wanted = "/".join(parts)
    looked = ", ".join(str(place) for place in _PLACES)
    raise EnvironmentLacks(f"data/{wanted} is missing (looked in {looked}); reinstall perfkit or use a full clone")
