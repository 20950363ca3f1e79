"""Does the notebook face work for a person in a real JupyterLab: the panel, the pictures, and the end of a kernel?"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import nbformat
import numpy as np
import psutil
import pytest

from perfkit.measuring.experiment import open_run
from perfkit.measuring.scanning.grid import open_scan_results

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
OVERRIDES = {
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"},
}
FOLDERS = (
    *("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTERLAB_WORKSPACES_DIR"),
    *("JUPYTERLAB_SETTINGS_DIR", "IPYTHONDIR", "HOME"),
)
KERNEL_IS_READY = """
  async () => {
    const { sessionContext } = jupyterapp.shell.currentWidget;
    await sessionContext.ready;
    await sessionContext.session.kernel.info;
    return sessionContext.session.kernel.id;
  }
"""
ERRORS = "[data-mime-type='application/vnd.jupyter.stderr'], [data-mime-type='application/vnd.jupyter.error']"
LIVE = """
  () => {
    const plot = document.querySelector('.perfkit-panel .js-plotly-plot');
    return JSON.stringify({
      title: plot.layout.title.text,
      latency: plot.layout.yaxis2.title.text,
      traces: Object.fromEntries(plot.data.map(({ name, x, y }) => [name, { x: [...x], y: [...y] }])),
    });
  }
"""


UNITS = {"latency (s)": 1.0, "latency (ms)": 1e3, "latency (µs)": 1e6}


class Lab:
    """A JupyterLab server on a folder of its own, with every setting in temporary folders."""

    def __init__(self, home: Path) -> None:
        self.root = home / "root"
        self.root.mkdir()
        settings = home / "app-settings"
        settings.mkdir()
        (settings / "overrides.json").write_text(json.dumps(OVERRIDES), "utf-8")
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            port = sock.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self._log = (home / "lab.log").open("wb")
        self._server = subprocess.Popen(
            [
                *(
                    sys.executable,
                    "-m",
                    "jupyterlab",
                    "--no-browser",
                    "--allow-root",
                    "--ip=127.0.0.1",
                    f"--port={port}",
                ),
                *("--ServerApp.port_retries=0", "--IdentityProvider.token=", "--ServerApp.password="),
                *("--ServerApp.terminals_enabled=False", "--LabApp.expose_app_in_browser=True"),
                *(f"--ServerApp.root_dir={self.root}", f"--LabApp.app_settings_dir={settings}"),
            ],
            env=os.environ | {name: str(home / name.lower()) for name in FOLDERS},
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )

    def wait_until_up(self) -> None:
        """Return when it answers."""
        for _ in range(300):
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                urllib.request.urlopen(f"{self.url}/api/status", timeout=5).close()
                return
            time.sleep(0.1)
        raise AssertionError("JupyterLab did not come up")

    def kernel_process(self, kernel_id: str) -> psutil.Process:
        """The process of a kernel."""
        children = psutil.Process(self._server.pid).children(recursive=True)
        return next(child for child in children if any(kernel_id in word for word in child.cmdline()))

    def close(self) -> None:
        """End the server and all that it started."""
        self._server.terminate()
        try:
            self._server.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self._server.pid, signal.SIGKILL)
            self._server.wait()
        self._log.close()


@pytest.fixture(scope="module")
def lab(tmp_path_factory, chromium):
    """One server for the module; it ends with its whole process group."""
    running = Lab(tmp_path_factory.mktemp("lab"))
    try:
        running.wait_until_up()
        yield running
    finally:
        running.close()


@pytest.fixture
def open_notebook(lab, visit):
    """Open a notebook in the page and wait for its kernel: `open_notebook(name)` -> (visit, kernel process)."""

    def open_it(name, **look):
        visited = visit(f"{lab.url}/lab/tree/{name}?reset", **look)
        visited.page.set_default_timeout(60_000)
        visited.page.wait_for_selector(".jp-Notebook .jp-Cell")
        kernel_id = visited.page.evaluate(KERNEL_IS_READY)
        return visited, lab.kernel_process(kernel_id)

    return open_it


def write_notebook(lab, name, *cells):
    """A notebook of code cells in the server's folder."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in cells])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(notebook, lab.root / name)


def run_all(visited):
    """Run every cell and wait for the last."""
    visited.page.evaluate("jupyterapp.commands.execute('notebook:run-all-cells')")


def live(visited):
    """What the panel's chart holds now, as plotly has it."""
    return json.loads(visited.page.evaluate(LIVE))


def wait_for(condition, seconds=45.0):
    """Wait until a condition of the test's own holds."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, "not within the time allowed"
        time.sleep(0.1)
    return value


def nudge(visited, label, presses):
    """Move a slider with the keyboard."""
    row = visited.page.locator(".widget-slider", has_text=label)
    row.locator(".noUi-handle").focus()
    for _ in range(presses):
        visited.page.keyboard.press("ArrowRight")


def write_first_part(lab, name):
    """The first notebook as far as its panel, on a small setting."""
    notebook = nbformat.read(NOTEBOOKS / "01_first_run.ipynb", as_version=4)
    shows_panel = next(at for at, cell in enumerate(notebook.cells) if cell.source.endswith("\npanel"))
    notebook.cells = notebook.cells[: shows_panel + 1]
    next(cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", ())).source = "seconds = 3"
    nbformat.write(notebook, lab.root / name)


def test_the_panel_shows_what_is_archived_and_says_when_the_server_dies(lab, open_notebook):
    write_first_part(lab, "first.ipynb")
    visited, kernel = open_notebook("first.ipynb")
    run_all(visited)
    visited.page.locator(".perfkit-panel .main-svg").first.wait_for()
    nudge(visited, "worker threads", 1)
    start = visited.page.locator(".perfkit-panel button", has_text="Start")
    start.click()

    wait_for(lambda: len(throughput(visited)) >= 6)
    while_running = live(visited)
    visited.page.get_by_text("Archived in").wait_for()
    wait_for(lambda: len(throughput(visited)) >= 13)
    (folder,) = (lab.root / "perfkit-runs").iterdir()
    run = open_run(folder)
    assert (run.point["settings"]["model"], run.point["settings"]["workers"]) == ("minilm", 2)
    assert_drawn(live(visited), run)
    assert_settled_points_stay(while_running, live(visited))

    start.click()
    wait_for(lambda: not any(throughput(visited)))
    wait_for(lambda: any(throughput(visited)))
    (server,) = (
        child for child in kernel.children(recursive=True) if "perfkit.serving.server.process" in child.cmdline()
    )
    server.kill()
    error = visited.page.locator(".perfkit-panel [role=alert]")
    error.wait_for()
    assert "the service ended with exit code -9" in error.text_content()
    assert start.is_enabled()
    assert (visited.outside, serious(visited.errors)) == ([], [])


def test_a_contest_draws_what_is_archived_and_keeps_the_curves_of_before(lab, open_notebook):
    notebook = nbformat.read(NOTEBOOKS / "02_threads_queues_lanes.ipynb", as_version=4)
    shows_contest = next(at for at, cell in enumerate(notebook.cells) if cell.source.endswith("\nthreads"))
    notebook.cells = notebook.cells[: shows_contest + 1]
    small = "seconds = 0.5\nrounds = 1\nusers = [1, 4]"
    next(cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", ())).source = small
    nbformat.write(notebook, lab.root / "contest.ipynb")
    known = set(lab.root.glob("perfkit-runs/scan-*"))
    visited, _ = open_notebook("contest.ipynb")
    run_all(visited)
    measure = visited.page.locator(".perfkit-contest button", has_text="Measure")
    measure.click()
    first = wait_for(lambda: curves(visited))
    scan = open_scan_results(*(set(lab.root.glob("perfkit-runs/scan-*")) - known))
    assert first == {side: rates(scan, side) for side in ("a thread per request", "a pool of 2")}
    assert {point["settings"]["intra_op_threads"] for point in scan.points} == {1}

    wait_for(measure.is_enabled)
    nudge(visited, "intra_op_threads", 1)
    measure.click()
    second = wait_for(lambda: found if (found := curves(visited)) != first else None)
    assert set(second) == {*first, "a thread per request: before", "a pool of 2: before"}
    assert (visited.outside, serious(visited.errors)) == ([], [])


CURVES = """
  () => {
    const plot = document.querySelector('.perfkit-contest .js-plotly-plot');
    const lines = (plot?.data ?? []).filter(({ mode, yaxis, x }) => mode === 'lines' && yaxis === 'y' && x[0] !== null);
    return Object.fromEntries(lines.map(({ name, y }) => [name, [...y]]));
  }
"""


def curves(visited):
    """Name -> throughput of every line in the contest's upper panel; empty before there is a chart."""
    return visited.page.evaluate(CURVES)


def rates(scan, side):
    """The throughput of a side's points that are joined to a line."""
    points = [point for point in scan.points if point["varied"]["side"] == side]
    return [point["throughput_rps"]["value"] if point["grade"] in ("sound", "short") else None for point in points]


def throughput(visited):
    """The points of the panel's first line."""
    return live(visited)["traces"]["throughput"]["y"]


def serious(errors):
    """What the page logged, but for JupyterLab's own remark that the tests have switched terminals off."""
    return [error for error in errors if "terminals" not in error]


def assert_drawn(drawn, run):
    """Every drawn point, computed again from the archived run."""
    table = run.table("requests")
    table = table[table["end_state"] == "ok"]
    started = run.stored.manifest.rounds[0]["started_ns"]
    received = (table["received_ns"].to_numpy("int64") - started) / 1e9
    latency_s = (table["received_ns"] - table["scheduled_ns"]).to_numpy("int64") / 1e9
    assert drawn["title"].endswith(f"users 8: {len(table):,} replies")
    throughput, p50 = drawn["traces"]["throughput"], drawn["traces"]["P50 of the reading"]
    assert len(throughput["x"]) > 10
    for x, rate, middle in list(zip(throughput["x"], throughput["y"], p50["y"], strict=True))[1:]:
        from_s = max(0.0, x - 1)
        inside = (received > from_s + 1e-12) & (received <= x + 1e-12)
        assert rate == pytest.approx(inside.sum() / (x - from_s))
        assert middle / UNITS[drawn["latency"]] == pytest.approx(
            np.sort(latency_s[inside])[int(np.ceil(inside.sum() / 2)) - 1], rel=1e-6
        )


def assert_settled_points_stay(early, late):
    """What was drawn while the run went on is what the archive says, but for the last second."""
    rates, final = (drawn["traces"]["throughput"]["y"] for drawn in (early, late))
    assert rates[1:-4] == final[1 : len(rates) - 4]


def test_a_killed_kernel_leaves_no_process_behind(lab, open_notebook):
    write_notebook(
        lab,
        "killed.ipynb",
        "import perfkit, threading\nfrom perfkit.showing.notebook.panel import Panel",
        "panel = Panel('noop', seconds=60)\npanel.start()\npanel",
        "service = perfkit.launch(model='noop')\n"
        "threading.Thread(target=perfkit.flame, args=(service,), kwargs={'seconds': 30}, daemon=True).start()",
    )
    visited, kernel = open_notebook("killed.ipynb")
    run_all(visited)
    wanted = ("server.process", "load.process", "collectors.process", "py-spy")
    family = wait_for(lambda: covering(kernel.children(recursive=True), wanted))
    kernel.kill()
    assert psutil.wait_procs(family, timeout=10)[1] == []


def covering(processes, wanted):
    """The processes, when each wanted word stands in the command line of one of them."""
    words = []
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            words.append(" ".join(process.cmdline()))
    return processes if all(any(word in line for line in words) for word in wanted) else None


def test_pictures_and_tables_are_drawn_and_follow_the_theme(lab, open_notebook):
    write_notebook(
        lab,
        "pictures.ipynb",
        "import perfkit\nfrom perfkit.showing.notebook.views import ledger\nservice = perfkit.launch(model='noop')",
        "scan = perfkit.scan(service, 'workers', [1, 2], load=perfkit.ClosedLoop(concurrency=4), seconds=0.6)\nscan",
        "scan[2]",
        "ledger(scan)",
        "perfkit.flame(service, seconds=0.3)",
        "%load_ext perfkit",
        "%perfkit runs",
    )
    visited, _ = open_notebook("pictures.ipynb")
    run_all(visited)
    visited.page.locator(".perfkit-flame canvas").wait_for()
    assert visited.page.locator(ERRORS).all_text_contents() == []
    wait_for(lambda: visited.page.locator(".perfkit-chart .gtitle").count() == 2)
    assert visited.page.locator(".perfkit-table > table > tbody > tr:not(.why)").count() == 3
    assert "perfkit-runs/scan-" in visited.page.locator(".jp-OutputArea-output").last.text_content()
    bright = text_colors(visited)
    visited.page.evaluate("jupyterapp.commands.execute('apputils:change-theme', { theme: 'JupyterLab Dark' })")
    wait_for(lambda: all(now != before for now, before in zip(text_colors(visited), bright, strict=True)))
    wait_for(lambda: visited.page.locator(".perfkit-flame canvas").evaluate("canvas => canvas.width") > 300)
    assert (visited.outside, serious(visited.errors)) == ([], [])


def text_colors(visited):
    """How a chart's title and a table are written."""
    color = "selector => getComputedStyle(document.querySelector(selector))"
    return [
        visited.page.evaluate(f"({color})('.perfkit-chart .gtitle').fill"),
        visited.page.evaluate(f"({color})('.perfkit-table td').color"),
    ]
