"""What does the server say of itself and of its model, as clients of the Open Inference Protocol ask it?"""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from perfkit.serving.server.json_signature import signature_of
from perfkit.serving.server.plain import MAX_INPUTS
from perfkit.serving.server.signature import TensorSpec

if TYPE_CHECKING:
    from perfkit.serving.server.service import Service

VERSION = "1"  # of every model: a server has one, and never another under the same name
_US_PER_S = 1_000_000
EXTENSIONS = ("binary_tensor_data", "model_configuration", "statistics")


def server_metadata() -> dict[str, Any]:
    """Name, version, and which extensions of the protocol are served."""
    return {"name": "perfkit", "version": version("perfkit"), "extensions": list(EXTENSIONS)}


def model_metadata(service: Service) -> dict[str, Any]:
    """The model's tensors as they lie on the wire."""
    signature = signature_of(service.model)
    return {
        "name": service.settings.model,
        "versions": [VERSION],
        "platform": "perfkit",
        "inputs": [_tensor(spec) for spec in signature.inputs],
        "outputs": [_tensor(spec) for spec in signature.outputs],
    }


def _tensor(spec: TensorSpec) -> dict[str, Any]:
    return {"name": spec.name, "datatype": spec.datatype, "shape": spec.wire_shape}


def model_config(service: Service) -> dict[str, Any]:
    """The model as Triton's clients know configurations; `max_batch_size` counts the inputs of one request."""
    settings, signature = service.settings, signature_of(service.model)
    config: dict[str, Any] = {
        "name": settings.model,
        "platform": "",
        "backend": "perfkit",
        "version_policy": {"latest": {"num_versions": 1}},
        "max_batch_size": most_inputs(service),
        "input": [_config_tensor(spec) for spec in signature.inputs],
        "output": [_config_tensor(spec) for spec in signature.outputs],
        "instance_group": [{"name": "workers", "kind": "KIND_CPU", "count": settings.workers}],
    }
    if settings.batch.max_size > 1:
        window_us = round(settings.batch.max_delay_s * _US_PER_S)
        preferred = [settings.batch.max_size]
        config["dynamic_batching"] = {"preferred_batch_size": preferred, "max_queue_delay_microseconds": window_us}
    return config


def _config_tensor(spec: TensorSpec) -> dict[str, Any]:
    datatype = "STRING" if spec.datatype == "BYTES" else spec.datatype
    return {"name": spec.name, "data_type": f"TYPE_{datatype}", "dims": list(spec.shape)}


def repository_index(service: Service) -> list[dict[str, Any]]:
    """The one model that there is."""
    why_not = service.unready()
    state = "READY" if why_not is None else "UNAVAILABLE"
    reason = "" if why_not is None else why_not.reason
    return [{"name": service.settings.model, "version": VERSION, "state": state, "reason": reason}]


def most_inputs(service: Service) -> int:
    """How many inputs one request may hold."""
    return min(service.settings.queue.depth or MAX_INPUTS, MAX_INPUTS)
