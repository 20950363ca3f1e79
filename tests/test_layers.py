"""Do imports run one way? Every import statement of the package is read and held against the layout."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "perfkit"
FOUNDATION = (
    "units",
    "clock",
    "errors",
    "records",
    "fields",
    "settings",
    "resources",
    "children",
    "quota",
)
WINGS = ("serving", "measuring", "explaining", "showing")
INSTRUMENTS = (
    "audience",
    "load",
    "collectors",
    "analysis",
    "archive",
    "importers",
    "placement",
    "control",
    "service",
    "gilwaits",
    "ledgerreader",
)

# What a part may import of its own wing; itself always. Parts that are not named here fail the test.
MAY_IMPORT = {
    "serving": {
        "instrument": set(),
        "scheduling": set(),
        "devices": set(),
        "execution": set(),
        "server": {"instrument", "scheduling", "devices", "execution"},
    },
    "measuring": {
        "audience": set(),
        "load": set(),
        "collectors": set(),
        "analysis": set(),
        "archive": set(),
        "placement": set(),
        "control": set(),
        "importers": {"collectors", "analysis", "archive"},
        "exporting": {"analysis", "archive"},
        "gpucheck": {"collectors"},
        "service": {"control", "placement"},
        "gilwaits": {"collectors", "service"},
        "ledgerreader": {"service"},
        "joining": {"load", "archive"},
        "phase": {*INSTRUMENTS, "joining"},
        "experiment": {*INSTRUMENTS, "joining", "phase"},
        "profile": {*INSTRUMENTS, "joining", "phase", "experiment"},
        "recount": {"analysis", "archive"},
        "scanning": {*INSTRUMENTS, "joining", "phase", "experiment", "profile"},
        "until": {*INSTRUMENTS, "phase", "experiment"},
        "replicates": {*INSTRUMENTS, "phase", "experiment", "until"},
        "comparing": {*INSTRUMENTS, "joining", "phase", "experiment"},
    },
    "explaining": {
        "twin": set(),
        "faults": set(),
        "diagnosis": {"twin", "faults"},
        "claims": {"twin", "faults", "diagnosis"},
    },
    "showing": {
        "plots": set(),
        "web": set(),
        "report": {"plots", "web"},
        "notebook": {"plots", "web", "report"},
        "cli": {"plots", "web", "report"},
    },
}
HEAVY = {"torch", "pandas", "plotly", "ipywidgets", "IPython", "scipy", "pyarrow", "anywidget", "jupyterlab"}
# Light parts: nothing heavy when they are imported (inside a function it may be).
LIGHT = ("serving/instrument", "serving/scheduling", "serving/server", "measuring/load", "measuring/collectors")
FILES = sorted(PACKAGE.rglob("*.py"))


def module_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def imports_of(path, *, at_import_time=False):
    """Dotted names that a file imports, `from a import b` as a.b, and the line of each."""
    tree = ast.parse(path.read_text("utf-8"))
    nodes = _run_at_import(tree.body) if at_import_time else ast.walk(tree)
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import; write the full name"
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)


def _run_at_import(statements):
    for statement in statements:
        yield statement
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.dump(statement.test):
            yield from _run_at_import(statement.orelse)
            continue
        for name in ("body", "orelse", "finalbody"):
            yield from _run_at_import(getattr(statement, name, []))
        for handler in getattr(statement, "handlers", []):
            yield from _run_at_import(handler.body)


def part_of(dotted):
    """('serving', 'server') of perfkit.serving.server.pool; ('', 'clock') of perfkit.clock; None of foreign names."""
    parts = dotted.split(".")
    if parts[0] != "perfkit" or len(parts) == 1:
        return None
    if parts[1] in WINGS:
        return parts[1], parts[2] if len(parts) > 2 else ""
    return "", parts[1]


def complaint(importer, imported):
    """Why a part may not import another; empty when it may."""
    wing, part = importer
    other_wing, other_part = imported
    if other_wing == "":
        return "" if other_part in FOUNDATION or wing else f"{other_part} is no part of the foundation"
    if wing == "":
        return "the foundation imports no wing"
    if wing == other_wing:
        allowed = MAY_IMPORT[wing].get(part)
        if allowed is None:
            return f"{wing}/{part} is not in the layout"
        return "" if other_part == part or other_part in allowed else f"{wing}/{part} may not import {other_part}"
    if WINGS.index(other_wing) > WINGS.index(wing):
        return f"{wing} comes before {other_wing}"
    if wing == "measuring" and part in ("load", "collectors"):
        return f"{part} imports nothing of serving"
    return ""


def test_the_rules_know_a_wrong_import_when_they_see_one():
    server, load, grid = ("serving", "server"), ("measuring", "load"), ("measuring", "scanning")
    wrong = [
        (server, ("measuring", "analysis")),
        (load, ("serving", "instrument")),
        (load, ("measuring", "collectors")),
        (("serving", "scheduling"), ("serving", "devices")),
        (("showing", "cli"), ("showing", "notebook")),
        (("", "clock"), ("serving", "server")),
        (("serving", "gossip"), ("serving", "server")),
    ]
    right = [(grid, load), (grid, server), (server, ("serving", "devices")), (("showing", "cli"), server)]
    assert [bool(complaint(*pair)) for pair in wrong] == [True] * len(wrong)
    assert [complaint(*pair) for pair in right] == [""] * len(right)


def test_imports_run_one_way():
    wrong = []
    for path in FILES:
        dotted = ".".join(module_of(path))
        importer = part_of(dotted)
        if importer is None or importer == ("", "__main__"):
            continue  # perfkit/__init__ offers names of every wing; __main__ calls the cli
        for name, line in imports_of(path):
            imported = part_of(name)
            if imported is not None and (why := complaint(importer, imported)):
                wrong.append(f"{path.relative_to(ROOT)}:{line}: imports {name}: {why}")
    assert wrong == []


def test_every_folder_of_the_package_has_a_place_in_the_layout():
    found = {
        (wing, entry.stem)
        for wing in WINGS
        if (PACKAGE / wing).is_dir()
        for entry in (PACKAGE / wing).iterdir()
        if not entry.name.startswith("__")
    }
    assert {(wing, part) for wing, part in found if part not in MAY_IMPORT[wing]} == set()
    top = {path.stem for path in PACKAGE.iterdir() if path.is_dir() or path.suffix == ".py"}
    assert top - {"__pycache__", *WINGS} == {*FOUNDATION, "__init__", "__main__"}


def test_only_the_clock_imports_time():
    users = {path.name for path in FILES for name, _ in imports_of(path) if name.split(".")[0] in ("time", "timeit")}
    assert users == {"clock.py"}


def test_only_the_shell_face_prints_and_exits():
    """Entry points of child processes talk to their parent on stdout, and answer with their exit code."""
    wrong = []
    for path in FILES:
        relative = str(path.relative_to(PACKAGE))
        if relative.startswith("showing/cli/") or relative == "__main__.py" or path.stem in ("process", "supervisor"):
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("print", "sys.exit", "exit", "quit"):
                wrong.append(f"{relative}:{node.lineno}: {ast.unparse(node.func)}")
    assert wrong == []


@pytest.mark.parametrize("part", LIGHT)
def test_light_parts_load_nothing_heavy(part):
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in (PACKAGE / part).rglob("*.py")
        for name, line in imports_of(path, at_import_time=True)
        if name.partition(".")[0] in HEAVY
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "module",
    [
        "perfkit",
        "perfkit.serving.server.supervisor",
        "perfkit.serving.server.process",
        "perfkit.measuring.service",
        "perfkit.measuring.load.process",
    ],
)
def test_importing_it_pulls_in_none_of_the_heavy_libraries(module):
    command = f"import {module}, sys; print(*sorted({HEAVY!r} & set(sys.modules)))"
    loaded = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True, cwd=ROOT)
    assert loaded.stdout.split() == []
