"""Does every notebook run from top to bottom without a page, and does it only import, call and display?"""

import ast
import os
from pathlib import Path

import nbclient
import nbformat
import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parents[3] / "notebooks").glob("*.ipynb"))
THREADS, DEVICE, TRUST = (
    next(path for path in NOTEBOOKS if path.name.startswith(number)) for number in ("02", "03", "05")
)
SMALL = {
    "01_first_run.ipynb": "seconds = 0.3\nworker_counts = [1, 2]\nbatch_sizes = [1, 8]",
    "02_threads_queues_lanes.ipynb": "seconds = 0.3\nrounds = 1\nusers = [4]\ncrowds = [50]\ncounts = [1, 2]\n"
    "intervals_s = [0.005, 0.0005]",
    "03_the_device.ipynb": 'device = "simulated:h200"\neffort = 0.05\nseconds = 0.5\n',
    "05_numbers_you_can_trust.ipynb": "seconds = 1\nrates = [50, 80]\nusers = [1]\npairs = 1\n",
}
RESULTS = {  # runs and scans in the archive afterwards
    "01_first_run.ipynb": 5,
    "02_threads_queues_lanes.ipynb": 13,
    "03_the_device.ipynb": 3,
    "05_numbers_you_can_trust.ipynb": 8,
}


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.name)
def path(request):
    """Each notebook in turn."""
    return request.param


def read(path):
    """A notebook as nbformat has it."""
    return nbformat.read(path, as_version=4)


def sources(notebook):
    """The text of every code cell."""
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


def run_headless(notebook, folder):
    """Run every cell; nothing may be said on stderr. The kinds of outputs that were shown."""
    client = nbclient.NotebookClient(
        notebook, timeout=120, store_widget_state=False, resources={"metadata": {"path": str(folder)}}
    )
    client.execute(env=os.environ | {"IPYTHONDIR": str(folder / "ipython")})
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert [output for output in outputs if output.get("name") == "stderr"] == []
    return {kind for output in outputs for kind in output.get("data", ())}


def read_small(path):
    """A notebook with the parameters of a test."""
    notebook = read(path)
    parameters = next(cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", ()))
    parameters.source = SMALL[path.name]
    return notebook


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.name, marks=[pytest.mark.slow] if path in (THREADS, DEVICE, TRUST) else [])
        for path in NOTEBOOKS
    ],
)
@pytest.mark.timeout(400)
def test_it_runs_top_to_bottom_headless(path, tmp_path):
    shown = run_headless(read_small(path), tmp_path)
    assert {"text/html", "text/plain", "application/vnd.jupyter.widget-view+json"} <= shown
    assert len(list((tmp_path / "perfkit-runs").iterdir())) == RESULTS[path.name]


@pytest.mark.parametrize(
    ("path", "last"),
    [pytest.param(THREADS, "ledger(found)", id="threads"), pytest.param(DEVICE, "show_findings(check", id="device")],
)
def test_the_first_experiment_runs_headless(path, last, tmp_path):
    notebook = read_small(path)
    measures = next(at for at, cell in enumerate(notebook.cells) if last in cell.source)
    notebook.cells = notebook.cells[: measures + 1]
    assert "application/vnd.jupyter.widget-view+json" in run_headless(notebook, tmp_path)


def test_what_needs_no_service_to_show_what_a_number_is_worth_runs_headless(tmp_path):
    notebook = read_small(TRUST)
    alone = ("import perfkit", "SingleServer(", "audited(")
    notebook.cells = [cell for cell in notebook.cells if any(text in cell.source for text in alone)]
    assert {"text/html", "application/vnd.jupyter.widget-view+json"} & run_headless(notebook, tmp_path)
    assert len(notebook.cells) == 5


def test_a_cell_defines_nothing(path):
    defining = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
    nodes = [node for source in sources(read(path)) for node in ast.walk(ast.parse(source))]
    assert [ast.unparse(node) for node in nodes if isinstance(node, defining)] == []


def test_it_is_saved_without_outputs_and_without_paths_of_a_machine(path):
    notebook = read(path)
    assert [cell.outputs for cell in notebook.cells if cell.cell_type == "code" and cell.outputs] == []
    assert [cell.execution_count for cell in notebook.cells if cell.get("execution_count") is not None] == []
    assert "widgets" not in notebook.metadata
