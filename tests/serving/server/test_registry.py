"""Is a model found by its name, made, and completed; and is a name that means none refused?"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from perfkit.errors import ConfigError, TargetFailed
from perfkit.serving.server.model import Collated
from perfkit.serving.server.registry import create_model, known_models


@pytest.fixture(autouse=True)
def models_importable(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    yield
    sys.modules.pop("lab_models", None)


def test_the_models_of_installed_packages_are_known():
    assert set(known_models()) >= {"minilm", "mlp", "noop", "resnet", "simulated"}
    assert type(create_model("noop")).__name__ == "Noop"


def test_a_class_is_found_by_module_and_name():
    assert type(create_model("lab_models:Probe")).__name__ == "Probe"


def test_a_class_whose_arguments_all_have_defaults_can_be_made():
    assert create_model("lab_models:Tunable").predict([3]) == [6]


def test_what_a_users_class_lacks_has_its_plainest_meaning():
    model = create_model("lab_models:OnlyPredict")
    item = model.preprocess("a")
    collated = model.collate([item, "b"])
    assert collated == Collated(inputs=["a", "b"], size=2, units=2, padded_units=2)
    outputs = model.split(model.predict(collated.inputs), 2)
    assert [model.postprocess(output) for output in outputs] == ["A", "B"]
    assert model.example() is None


@pytest.mark.parametrize(
    ("name", "kind", "text"),
    [
        ("rumour", ConfigError, "unknown model 'rumour'; known: "),
        ("", ConfigError, "unknown model ''; known: "),
        (
            "noop:fast",
            ConfigError,
            "model 'noop:fast' cannot be made (too many positional arguments); it is written noop",
        ),
        ("simulated", ConfigError, "model 'simulated' cannot be made (missing a required argument: 'preset_name')"),
        ("no_such_module:Model", ConfigError, "model 'no_such_module:Model': cannot import no_such_module"),
        ("lab_models:Nobody", ConfigError, "model 'lab_models:Nobody': module lab_models has no class Nobody"),
        ("lab_models:__name__", ConfigError, "model 'lab_models:__name__': module lab_models has no class __name__"),
        ("../evil:Model", ConfigError, "unknown model '../evil:Model'; give module:Class"),
        (".evil:Model", ConfigError, "unknown model '.evil:Model'; give module:Class"),
        ("lab_models:PredictsNothing", ConfigError, "PredictsNothing has no predict(inputs); a model needs at least"),
        (
            "lab_models:NeedsArgument",
            ConfigError,
            "model 'lab_models:NeedsArgument' cannot be made (missing a required",
        ),
        ("lab_models:FailsWhenMade", TargetFailed, "model 'lab_models:FailsWhenMade' cannot be made: RuntimeError: no"),
    ],
)
def test_a_name_that_gives_no_model_is_refused_with_the_reason(name, kind, text):
    with pytest.raises(kind) as refusal:
        create_model(name)
    assert str(refusal.value)[: len(text)] == text


@pytest.mark.parametrize(("code", "text"), [("1 / 0", "raised ZeroDivisionError"), ("def", "raised SyntaxError")])
def test_a_module_that_fails_when_imported_is_the_targets_failure(tmp_path, monkeypatch, code, text):
    (tmp_path / "broken_model.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(TargetFailed, match=f"^model 'broken_model:Model': broken_model {text}"):
        create_model("broken_model:Model")
