"""Are contradictions between a level of execution and the rest refused with what to do?"""

from __future__ import annotations

import pytest

from perfkit.errors import ConfigError
from perfkit.settings.execution import DTYPES, LEVELS, ExecutionSettings
from perfkit.settings.server import ServerSettings
from perfkit.settings.workers import ConcurrencySettings


def test_the_default_is_the_models_own_way():
    assert ServerSettings().execution == ExecutionSettings(level="own", dtype="float32")


@pytest.mark.parametrize("dtype", DTYPES[1:])
def test_the_models_own_way_is_float32(dtype):
    with pytest.raises(ConfigError, match=f"^execution.dtype is {dtype} with execution.level = own, which is float"):
        ExecutionSettings(dtype=dtype)


@pytest.mark.parametrize(
    ("level", "concurrency", "reason"),
    [
        ("aoti", "elastic", "whose threads come and go, and each would load its own; set concurrency.model = pool"),
        ("cuda_graph", "thread_per_request", "whose threads come and go, and each would load its own; set concurre"),
        ("compile", "processes", "whose graphs could not be counted under load; set execution.level = aoti"),
    ],
)
def test_what_a_concurrency_model_cannot_do_is_refused(level, concurrency, reason):
    with pytest.raises(
        ConfigError, match=f"^execution.level is {level} with concurrency.model = {concurrency}, {reason}"
    ):
        ServerSettings(execution=ExecutionSettings(level=level), concurrency=ConcurrencySettings(model=concurrency))


def test_only_compilers_take_long():
    assert [level for level in LEVELS if ExecutionSettings(level=level).compiles] == ["compile", "aoti"]
