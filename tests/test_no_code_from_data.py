"""Can anything that perfkit reads become code? Every call and import of the tree is read (the CI part of R18)."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FILES = sorted(path for folder in ("perfkit", "sample_models") for path in (ROOT / folder).rglob("*.py"))
MODULES = {"pickle", "_pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "jsonpickle"}
BUILTINS = {"eval", "exec", "compile", "__import__"}
# The last two parts of a dotted call.
CALLS = {
    "torch.load": "weights come as safetensors",
    "torch.package": "weights come as safetensors",
    "jit.load": "weights come as safetensors",
    "hub.load": "no model comes from an address",
    "yaml.load": "settings are TOML",
    "yaml.unsafe_load": "settings are TOML",
    "os.system": "commands are lists of words",
    "os.popen": "commands are lists of words",
    "pd.read_pickle": "tables are Parquet",
    "pandas.read_pickle": "tables are Parquet",
}


def dangers(source):
    """Line and text of everything in a source that could turn data into code."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names if alias.name.partition(".")[0] in MODULES]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in MODULES:
            found.append((node.lineno, node.module))
        elif isinstance(node, ast.Call) and is_dangerous(node):
            found.append((node.lineno, ast.unparse(node)))
    return found


def is_dangerous(call):
    """Whether a call is banned by its name or by an argument."""
    name = ast.unparse(call.func)
    if name in BUILTINS or ".".join(name.split(".")[-2:]) in CALLS:
        return True
    given = {word.arg: ast.unparse(word.value) for word in call.keywords}
    return given.get("allow_pickle", "False") != "False" or given.get("shell", "False") != "False"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_data_becomes_code(path):
    assert dangers(path.read_text("utf-8")) == []


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "import marshal as m",
        "from dill import loads",
        "def f(x):\n    from joblib import load",
        "eval(text)",
        "exec(text)",
        "compile(text, '', 'exec')",
        "torch.load(path)",
        "torch.load(path, weights_only=True)",
        "torch.jit.load(path)",
        "torch.hub.load('user/repo', 'model')",
        "np.load(path, allow_pickle=True)",
        "np.load(path, allow_pickle=choice)",
        "yaml.load(text)",
        "subprocess.run(text, shell=True)",
        "os.system(text)",
    ],
)
def test_the_search_finds_what_it_looks_for(source):
    """The control of the test above."""
    assert len(dangers(source)) == 1


@pytest.mark.parametrize("source", ["model.eval()", "re.compile(text)", "json.loads(text)", "np.load(path)"])
def test_the_search_leaves_harmless_namesakes_alone(source):
    assert dangers(source) == []
