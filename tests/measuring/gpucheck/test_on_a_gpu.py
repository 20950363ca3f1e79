"""Does every must line hold on this machine's GPU?"""

import json

import pytest
import torch

from perfkit.showing.cli.main import main


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_no_must_line_fails_on_the_gpu(capsys, tmp_path):
    code = main(["gpucheck", "--json", "--out", str(tmp_path)])
    document = json.loads(capsys.readouterr().out)
    assert [line for line in document["checks"] if line["status"] == "fail"] == []
    assert (code, document["simulated"]) == (0, False)
