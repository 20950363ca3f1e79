"""What do the tests of the levels share? A network so small that even a compiler is quick with it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from perfkit.serving.execution.execution import Execution
from perfkit.serving.execution.network import Network

LONGEST = 8


class TinyEncoder(nn.Module):
    """Ids and lengths in, two numbers a row out: the mean of the real tokens' vectors, through one layer."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(1)
        self.words = nn.Parameter(torch.empty(50, 4).normal_(generator=generator))
        self.last = nn.Linear(4, 2)
        self.last.weight = nn.Parameter(torch.empty(2, 4).normal_(generator=generator))
        self.last.bias = nn.Parameter(torch.zeros(2))

    def forward(self, ids, lengths):
        real = torch.arange(ids.shape[1]) < lengths.unsqueeze(1)
        vectors = nn.functional.embedding(ids, self.words) * real.unsqueeze(2)
        return self.last(vectors.sum(1) / lengths.unsqueeze(1).to(self.words.dtype))


def example(size, length):
    """Rows of ascending ids, each row one shorter than the one before."""
    lengths = [max(1, length - row) for row in range(size)]
    rows = [[index + 1 if index < real else 0 for index in range(length)] for real in lengths]
    return torch.tensor(rows), torch.tensor(lengths)


@pytest.fixture
def network():
    """A network whose rows have a length."""
    return Network(module=TinyEncoder(), arguments=lambda inputs: inputs, example=example, longest=LONGEST)


@pytest.fixture
def plain_network():
    """A network whose rows have one length only."""
    torch.manual_seed(2)
    module = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    return Network(
        module=module,
        arguments=lambda inputs: (inputs,),
        example=lambda size, length: (torch.linspace(-1, 1, 3 * size).view(size, 3),),
    )


@pytest.fixture(scope="session")
def ready():
    """Gives an execution that is ready for up to four rows; what took a compiler is made once."""
    compiled = {}

    def make(network, level, dtype="float32"):
        key = (network.longest, level, dtype)
        if key in compiled:
            return compiled[key]
        execution = Execution(network, level, dtype)
        execution.get_ready(execution.shapes(4, (4,)), torch.get_num_threads())
        if level in ("compile", "aoti"):
            compiled[key] = execution
        return execution

    return make
