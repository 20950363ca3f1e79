"""Which network does a peer serve? The same arithmetic as perfkit's own sample models, rows in and rows out."""

from collections.abc import Callable

Rows = list[list[float]]

_ANSWER = [0.25, 0.25, 0.25, 0.25]


def load_network(name: str) -> Callable[[Rows], Rows]:
    """`noop` or `mlp`, ready to be called from any thread."""
    return _load_mlp() if name == "mlp" else _answer_at_once


def _answer_at_once(rows: Rows) -> Rows:
    return [_ANSWER] * len(rows)


def _load_mlp() -> Callable[[Rows], Rows]:
    import torch

    from sample_models.mlp import Mlp

    # OMP_NUM_THREADS=1, which the benchmark sets, holds in every thread; this call would in one.
    model = Mlp()
    model.load(None, 0)
    return lambda rows: model.predict(torch.tensor(rows)).tolist()
