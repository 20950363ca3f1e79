"""Does the no-op answer anything, and stay free of torch and numpy?"""

import subprocess
import sys

import pytest

from perfkit.serving.devices.cpu import CpuDevice
from sample_models.noop import Noop


@pytest.mark.parametrize("payload", [None, 3, "text", [1, 2], {"deep": {"er": []}}, True])
def test_any_payload_gets_the_same_four_floats(payload):
    model = Noop()
    model.load(CpuDevice(), 0)
    collated = model.collate([model.preprocess(payload), model.preprocess("its mate")])
    outputs = model.split(model.predict(collated.inputs), collated.size)
    assert [model.postprocess(output) for output in outputs] == [[0.25] * 4, [0.25] * 4]
    assert (collated.size, collated.units, collated.padded_units) == (2, 2, 2)


def test_importing_it_brings_neither_torch_nor_numpy():
    program = "import sys, sample_models.noop; print(sorted({'torch', 'numpy', 'PIL'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
