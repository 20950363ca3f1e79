"""Which settings does a model start from, and which device serves it?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perfkit import fields
from perfkit.errors import ConfigError
from perfkit.serving.devices.device import Device
from perfkit.settings.server import ServerSettings

_SIMULATED = "simulated"


def settings_for(model: str, changes: Mapping[str, Any]) -> ServerSettings:
    """Defaults, then what a simulated preset sets for its service, then the user's changes (dotted names).

    Raises ConfigError for an unknown name, a value out of range, or an unknown preset.
    """
    if unknown := fields.unknown(changes, ServerSettings):
        raise ConfigError(f"unknown setting {unknown[0]}; known: {', '.join(fields.known_names(ServerSettings))}")
    return fields.replace(ServerSettings(model=model), _preset_defaults(model) | dict(changes))


def _preset_defaults(model: str) -> dict[str, Any]:
    head, _, preset = model.partition(":")
    if head != _SIMULATED:
        return {}
    from perfkit.serving.devices.simulated.preset import load_preset

    return fields.flatten(load_preset(preset).server_defaults)


def open_device(settings: ServerSettings, model: object = None) -> Device:
    """The device that the settings name; `auto` follows the model, which is not loaded yet.

    Raises ConfigError for a contradiction, EnvironmentLacks when there is no such device.
    """
    is_simulated_model = settings.model.partition(":")[0] == _SIMULATED
    wanted = settings.device
    if wanted == "auto":
        wanted = _SIMULATED if is_simulated_model else "cuda" if _has_gpu_for(model, settings) else "cpu"
    if (wanted == _SIMULATED) != is_simulated_model:
        raise ConfigError(
            f"device is {settings.device} with model {settings.model}; "
            "simulated models run on the simulated device, others on cpu or cuda"
        )
    if wanted == _SIMULATED:
        from perfkit.serving.devices.simulated.device import SimulatedDevice
        from perfkit.serving.devices.simulated.preset import load_preset

        return SimulatedDevice(load_preset(settings.model.partition(":")[2]), seed=settings.seed)
    if wanted == "cuda":
        from perfkit.serving.devices.cuda.device import CudaDevice

        return CudaDevice(settings.cuda)
    from perfkit.serving.devices.cpu import CpuDevice

    return CpuDevice()


def _has_gpu_for(model: object, settings: ServerSettings) -> bool:
    """Whether the model says that it can use a GPU, and there is one. Who has no use for torch does not import it."""
    if not getattr(model, "runs_on_cuda", False):
        return False
    from perfkit.serving.devices.cuda.presence import is_present

    return is_present(settings.cuda)
