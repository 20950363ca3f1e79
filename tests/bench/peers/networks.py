"""Which network does a peer serve? The same arithmetic as perfkit's own sample models, rows in and rows out."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy

    from sample_models.mlp import Mlp

Rows = list[list[float]]

_ANSWER = [0.25, 0.25, 0.25, 0.25]


def load_network(name: str) -> Callable[[Rows], Rows]:
    """`noop` or `mlp`, ready to be called from any thread."""
    return _load_mlp() if name == "mlp" else _answer_at_once


def load_arrays(name: str) -> Callable[["numpy.ndarray"], "numpy.ndarray"]:
    """The same for peers that hand arrays over."""
    import numpy

    if name != "mlp":
        return lambda rows: numpy.tile(numpy.float32(_ANSWER), (len(rows), 1))
    import torch

    model = _mlp()
    return lambda rows: model.predict(torch.from_numpy(rows)).numpy()


def _answer_at_once(rows: Rows) -> Rows:
    return [_ANSWER] * len(rows)


def _load_mlp() -> Callable[[Rows], Rows]:
    import torch

    model = _mlp()
    return lambda rows: model.predict(torch.tensor(rows)).tolist()


def _mlp() -> "Mlp":
    from perfkit.serving.devices.cpu import CpuDevice
    from sample_models.mlp import Mlp

    # OMP_NUM_THREADS=1, which the benchmark sets, holds in every thread; torch.set_num_threads would in one.
    model = Mlp()
    model.load(CpuDevice(), 0)
    return model
