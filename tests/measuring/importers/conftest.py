"""A file with given content, read by whatever format recognises it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from perfkit.measuring.importers.formats import read_file
from perfkit.measuring.importers.imported import Imported


@pytest.fixture
def reading(tmp_path) -> Callable[[str | bytes], Imported]:
    """reading("a,b\\n1,2\\n") writes the text under a name that tells nothing and imports it."""

    def read(content: str | bytes) -> Imported:
        return read_file(written(content))

    def written(content: str | bytes) -> Path:
        path = tmp_path / "somebody.dat"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return read
