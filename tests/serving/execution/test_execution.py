"""Does each level compute what the network computes, for any rows, from any thread, and say how far it is off?"""

import concurrent.futures

import pytest
import torch
from torch import nn

from perfkit.errors import EnvironmentLacks, TargetFailed
from perfkit.serving.execution.execution import Execution
from perfkit.serving.execution.network import Network
from perfkit.serving.execution.precision import Narrowed

QUICK = ["eager", "inference_mode", "jit", "jit_optimized"]
COMPILED = [pytest.param(level, marks=pytest.mark.slow) for level in ("compile", "aoti")]
LEVELS = QUICK + COMPILED
TOLERANCE = {"float32": 1e-5, "bfloat16": 0.05, "float16": 0.005}


def served(execution, size, length):
    """What a worker gets for so many rows: fitted, run, and without the rows of the padding."""
    with torch.inference_mode():
        arguments = execution.network.example(size, length)
        if execution.is_static:
            arguments = execution.with_rows(arguments, 1 << (size - 1).bit_length())
        return execution.run(arguments)[:size]


def get_ready(execution, most_rows=1, intra_op_threads=1):
    execution.get_ready(execution.shapes(most_rows, (4,)), intra_op_threads)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("level", LEVELS)
def test_a_level_answers_any_number_of_rows_as_the_network_does(ready, network, level, dtype):
    execution = ready(network, level, dtype)
    for size, length in ((1, 4), (3, 4), (4, 8), (2, 8)):
        expected = network.module(*network.example(size, length)).detach()
        torch.testing.assert_close(served(execution, size, length), expected, rtol=0, atol=TOLERANCE[dtype])


@pytest.mark.parametrize("level", LEVELS)
def test_a_network_without_lengths_runs_too(ready, plain_network, level):
    execution = ready(plain_network, level)
    for size in (1, 3, 4):
        expected = plain_network.module(*plain_network.example(size, 0)).detach()
        torch.testing.assert_close(served(execution, size, 0), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("level", LEVELS)
def test_threads_share_a_level_without_mixing_their_rows(ready, network, level):
    execution = ready(network, level)
    before = execution.graphs
    work = [(size, length) for size in (1, 2, 4) for length in (4, 8)] * 20
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda shape: served(execution, *shape), work))
    for shape, outputs in zip(work, found, strict=True):
        expected = network.module(*network.example(*shape)).detach()
        torch.testing.assert_close(outputs, expected, rtol=0, atol=1e-5)
    assert execution.graphs == before


@pytest.mark.parametrize("level", QUICK)
def test_the_difference_is_measured_before_anything_is_served(ready, network, level):
    worst = ready(network, level, "bfloat16").stats()["difference"]
    assert 0 < worst["difference_ratio"] < worst["allowed_ratio"] == 0.06
    assert worst["bucket"] in ("1 x 4", "1 x 8", "4 x 4")


def test_eager_records_what_inference_mode_does_not(ready, network):
    seen = []
    network.module.register_forward_hook(lambda module, inputs, output: seen.append(output.requires_grad))
    for level in ("eager", "inference_mode"):
        execution = ready(network, level)
        seen.clear()
        outputs = served(execution, 2, 4)
        assert (seen, outputs.requires_grad) == ([level == "eager"], False)


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
def test_a_level_that_keeps_the_examples_shape_is_refused():
    """A trace that took a length for a constant: what the gate is for."""

    class Halves(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(1))

        def forward(self, x):
            return x.sum(1, keepdim=True) * self.scale / float(x.shape[1])

    network = Network(
        module=Halves(),
        arguments=lambda inputs: (inputs,),
        example=lambda size, length: (torch.ones(size, length),),
        longest=8,
    )
    with pytest.raises(TargetFailed, match=r"^execution.level = jit with execution.dtype = float32 differs from eager"):
        get_ready(Execution(network, "jit", "float32"))
    get_ready(Execution(network, "inference_mode", "float32"))


def test_what_torch_cannot_do_is_told_with_what_to_set(plain_network):
    plain_network.module[0].weight = nn.Parameter(torch.zeros(4, 99))
    with pytest.raises(EnvironmentLacks) as refusal:
        get_ready(Execution(plain_network, "inference_mode", "float32"))
    told = str(refusal.value)
    assert told.startswith("torch cannot run execution.level = inference_mode with execution.dtype = float32 here: ")
    assert told.endswith("; set another level or dtype, or execution.level = own")


def test_only_what_is_new_is_prepared_and_what_is_ready_stays(network):
    execution = Execution(network, "inference_mode", "float32")
    calls = []
    network.module.register_forward_hook(lambda *_: calls.append(1))
    get_ready(execution)
    first = len(calls)
    get_ready(execution)
    assert len(calls) == first > 0
    get_ready(execution, intra_op_threads=2)
    assert len(calls) == 2 * first


def test_a_narrow_copy_leaves_the_networks_own_weights_alone(network):
    narrow = Narrowed(network.module, torch.bfloat16)
    assert {one.dtype for one in narrow.parameters()} == {torch.bfloat16}
    assert {one.dtype for one in network.module.parameters()} == {torch.float32}
    assert narrow(*network.example(1, 4)).dtype is torch.float32
