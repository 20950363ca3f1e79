"""Names of variants: what is the preset's name, what its pace, what a change."""

import pytest

from perfkit.serving.devices.simulated.variant import Variant, read_variant


@pytest.mark.parametrize(
    ("name", "plain", "ratio", "changes"),
    [
        ("h200", "h200", 1.0, {}),
        ("h200@0.25", "h200", 0.25, {}),
        ("h200+device.copies=pageable", "h200", 1.0, {"device.copies": "pageable"}),
        ("a/b@2+device.x=1+service.y=2", "a/b", 2.0, {"device.x": "1", "service.y": "2"}),
        ("a+b/mine@home/mine.toml", "a+b/mine@home/mine.toml", 1.0, {}),
        ("h200+copies", "h200+copies", 1.0, {}),
    ],
)
def test_a_name_falls_into_preset_pace_and_changes(name, plain, ratio, changes):
    assert read_variant(name) == Variant(plain=plain, ratio=ratio, changes=changes)
