"""Which commands are there, and how do their ends become exit codes?"""

import errno
import json
import re
import subprocess
import sys

import pytest

from perfkit import __version__
from perfkit.errors import ArchiveError, ConfigError, EnvironmentLacks, PerfkitError, TargetFailed
from perfkit.showing.cli import main as cli
from perfkit.showing.cli import runs


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_command_explains_itself(perfkit, command):
    ended = perfkit(command, "--help")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith(f"usage: perfkit {command} ")
    assert "--json" in ended.out or command in ("serve", "report")


def test_help_names_every_command(perfkit):
    ended = perfkit("--help")
    assert ended.code == 0
    assert [name for name in cli.COMMANDS if not re.search(rf"\n    {name}\s", ended.out)] == []


def test_the_version_is_the_packages(perfkit):
    assert perfkit("--version").out == f"perfkit {__version__}\n"


def test_the_module_is_the_command():
    done = subprocess.run([sys.executable, "-m", "perfkit", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"perfkit {__version__}\n"


def test_help_loads_nothing_heavy():
    story = (
        "import sys; sys.argv = ['perfkit', '--help']\n"
        "from perfkit.showing.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(sorted({'torch', 'numpy', 'pandas', 'plotly', 'rich', 'pyarrow'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", story], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"


@pytest.mark.parametrize(
    ("end", "code", "line"),
    [
        (PerfkitError("the answer is no"), 1, "perfkit: the answer is no"),
        (ConfigError("workers is 0"), 2, "perfkit: workers is 0"),
        (EnvironmentLacks("no room"), 3, "perfkit: no room"),
        (ArchiveError("the disk is full"), 3, "perfkit: the disk is full"),
        (TargetFailed("it died"), 4, "perfkit: it died"),
        (KeyboardInterrupt(), 130, "perfkit: interrupted"),
        (KeyboardInterrupt("go on with --resume"), 130, "perfkit: go on with --resume"),
        (
            OSError(errno.ENOSPC, "No space left on device", "/tmp/x"),
            3,
            "perfkit: the system refused: [Errno 28] No space left on device: '/tmp/x'; make room or give access, "
            "then try again",
        ),
    ],
)
def test_every_kind_of_end_has_its_exit_code_and_one_line(perfkit, monkeypatch, end, code, line):
    def run(options):
        raise end

    monkeypatch.setattr(runs, "run", run)
    ended = perfkit("runs")
    assert (ended.code, ended.out, ended.line) == (code, "", line)


def test_an_error_of_our_own_is_not_hidden(perfkit, monkeypatch):
    def run(options):
        raise ZeroDivisionError

    monkeypatch.setattr(runs, "run", run)
    with pytest.raises(ZeroDivisionError):
        perfkit("runs")


def test_a_reader_that_leaves_early_is_no_error(start, tmp_path):
    (tmp_path / "empty").mkdir()
    process = start("runs", "list", "empty", "--json")
    process.stdout.close()
    assert process.wait(60) == 0
    assert process.stderr.read() == ""


def test_json_is_one_document_in_ascii(perfkit, tmp_path):
    (tmp_path / "empty").mkdir()
    ended = perfkit("runs", "list", "empty", "--json")
    assert json.loads(ended.out.encode("ascii")) == {"schema": 1, "simulated": False, "runs": []}
    assert ended.out.count("\n") == 1
