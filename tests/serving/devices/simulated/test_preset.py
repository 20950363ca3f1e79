"""Presets: what comes with perfkit, what a wrong file is told, what the parts add up to."""

import pytest

from perfkit import fields
from perfkit.errors import ConfigError
from perfkit.resources import data_path
from perfkit.serving.devices.simulated.preset import ServiceParts, Step, load_preset, preset_names, read_preset
from perfkit.settings.server import ServerSettings

KNOWN = [
    "bert-large",
    "h200",
    "llama2-7b-a100",
    "s000-chain",
    "s001-a10",
    "s001-pool",
    "s002-textcls",
    "s003-level0",
    "s003-level1",
    "s003-level2",
    "s003-threads",
    "steady-100rps",
]


def test_an_unknown_preset_is_refused_with_the_known_ones():
    assert preset_names() == KNOWN
    with pytest.raises(ConfigError, match=rf"unknown preset 's004'; known: {', '.join(KNOWN)}"):
        load_preset("s004")


@pytest.mark.parametrize("name", KNOWN)
def test_a_preset_says_where_it_comes_from_and_its_server_settings_are_valid(name):
    preset = load_preset(name)
    assert (preset.name, bool(preset.source)) == (name, True)
    assert fields.from_nested(ServerSettings, preset.server_defaults).workers >= 1


@pytest.mark.parametrize("name", KNOWN)
def test_at_most_two_rows_of_a_published_table_were_fitted(name):
    assert sum(row.kind == "fitted" for row in load_preset(name).table_rows) <= 2


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[service\n", "preset file wrong.toml: "),
        ("colour = 1\n", "unknown entry colour"),
        ("[device]\nalpha_ms = 3\n", "unknown setting device.alpha_ms"),
        ("[device]\nalpha_s = -1.0\n", "alpha_s is -1.0; it takes a number from 0 to 60"),
        ('[service]\nlock_policy = "lifo"\n', "lock_policy is 'lifo'; it takes one of fifo, random"),
        ('[[table_rows]]\nkind = "measured"\n', "kind is 'measured'; it takes one of fitted, predicted"),
    ],
)
def test_a_wrong_file_is_refused_with_the_reason(tmp_path, text, complaint):
    path = tmp_path / "wrong.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=complaint):
        read_preset(path)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="cannot read preset"):
        read_preset(tmp_path / "absent.toml")


def test_a_request_is_its_host_work_its_copies_and_its_device_work_in_order():
    steps = load_preset("s003-threads").request_steps(in_flight=8)
    assert [step.engine for step in steps] == ["delay", "host", "host", "compute", "host"]
    assert sum(step.mean_ns for step in steps) == pytest.approx(1e9 / 2.8, rel=1e-3)
    copying = load_preset("bert-large").request_steps(in_flight=1)
    assert [step.engine for step in copying] == ["host", "h2d", "compute", "d2h"]


def test_only_lock_work_grows_with_the_requests_in_flight_and_only_beyond_the_limit():
    service = ServiceParts(contention_per_request_ratio=0.01, contention_free_requests=10)
    part = load_preset("s002-textcls").service.predict
    assert [service.inflation_ratio(n) for n in (1, 10, 40)] == pytest.approx([1.0, 1.0, 1.3])
    assert service.host_steps(part, 40) == [
        Step("delay", pytest.approx(part.parallel_s * 1e9), 0.0),
        Step("host", pytest.approx(1.3 * part.serial_s * 1e9), 0.0),
    ]


def test_full_batches_on_the_a10_are_limited_by_the_device():
    device = load_preset("s001-a10").device
    assert [size / device.compute_s(size) for size in (1, 8)] == pytest.approx([1000.0, 1333.0], rel=1e-3)


def test_a_preset_may_lie_anywhere(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('source = "calibrated"\n[device]\nalpha_s = 0.25\n')
    preset = load_preset(str(path))
    assert (preset.name, preset.device.alpha_s) == ("mine", 0.25)


def test_a_preset_can_be_taken_faster_with_every_time_and_no_size_changed():
    whole, tenth = load_preset("llama2-7b-a100"), load_preset("llama2-7b-a100@0.1")
    assert (tenth.name, tenth.source.endswith("; every time multiplied by 0.1")) == ("llama2-7b-a100@0.1", True)
    assert tenth.device.compute_s(3) == pytest.approx(whole.device.compute_s(3) / 10)
    assert tenth.service.preprocess.parallel_s == pytest.approx(0.23)
    assert tenth.device.h2d_bytes_per_s == pytest.approx(248e9)
    assert tenth.device.launches.dispatch_s == pytest.approx(117e-6)
    assert tenth.server_defaults["batch"] == {"max_size": 16, "max_delay_s": pytest.approx(0.005)}
    assert tenth.device.memory.request_bytes == whole.device.memory.request_bytes
    assert load_preset("s003-threads@0.5").table_rows[0].throughput_rps == pytest.approx(5.6)


@pytest.mark.parametrize("ratio", ["0", "fast", "-1", "nan"])
def test_a_scale_that_is_none_is_refused(ratio):
    with pytest.raises(ConfigError, match=f"multiplied by '{ratio}'; give a number from 0.001 to 1000"):
        load_preset(f"s003-threads@{ratio}")


def test_a_name_may_change_parameters_and_then_promises_no_table():
    preset = load_preset(
        "s003-threads@0.5+device.copies=pageable+device.launches.kernels=300+service.lock_policy=random"
    )
    assert (preset.device.copies, preset.device.launches.kernels) == ("pageable", 300)
    assert (preset.service.lock_policy, preset.device.alpha_s) == ("random", 0.031)
    assert preset.table_rows == ()
    assert preset.source.endswith(
        "every time multiplied by 0.5; changed: device.copies = pageable, device.launches.kernels = 300, "
        "service.lock_policy = random"
    )
    assert preset.name.startswith("s003-threads@0.5+device.copies=pageable+")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ("colour=red", "unknown parameter 'colour' of a preset; its name starts with service. or device."),
        ("device.colour=red", "unknown setting colour; known: alpha_s, "),
        ("device.alpha_s=slow", "alpha_s is 'slow'; it takes a number from 0 to 60"),
        ("device.alpha_s=-1", "alpha_s is -1.0; it takes a number from 0 to 60"),
    ],
)
def test_a_change_that_cannot_be_is_refused_with_the_reason(change, complaint):
    with pytest.raises(ConfigError, match=complaint):
        load_preset(f"h200+{change}")


def without_reason(text):
    """The parameters of the service and the device that have no word beside them, or above their block of lines."""
    section, is_explained, bare = "", False, []
    for line in text.splitlines():
        if line.startswith("["):
            section, is_explained = line.strip("[]"), False
        elif not line or line.startswith("#"):
            is_explained = bool(line)
        elif section.split(".")[0] in ("service", "device") and "#" not in line and not is_explained:
            bare.append(line)
    return bare


@pytest.mark.parametrize("name", KNOWN)
def test_every_parameter_of_a_preset_has_its_derivation_beside_it(name):
    assert without_reason(data_path("presets", f"{name}.toml").read_text("utf-8")) == []


def test_a_parameter_without_a_derivation_is_noticed():
    text = "[device]\n# why\nalpha_s = 1.0\n\nbeta_s = 2.0\n[server]\nworkers = 2\n"
    assert without_reason(text) == ["beta_s = 2.0"]
