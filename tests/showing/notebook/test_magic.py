"""Does `%perfkit` run the command line and show what it says?"""

from types import SimpleNamespace

from IPython.core.formatters import DisplayFormatter

import perfkit
from perfkit.showing.notebook.magic import run_command


def test_loading_the_extension_offers_the_line_magic():
    offered = []
    shell = SimpleNamespace(
        display_formatter=DisplayFormatter(), register_magic_function=lambda *what: offered.append(what)
    )
    perfkit.load_ipython_extension(shell)
    assert offered == [(run_command, "line", "perfkit")]


def test_a_command_runs_in_a_process_of_its_own_and_its_output_is_shown(capfd, tmp_path):
    assert run_command(f"runs list '{tmp_path}' --json") is None
    assert capfd.readouterr().out.strip() == '{"schema": 1, "simulated": false, "runs": []}'


def test_a_refusal_is_shown_with_its_exit_code(capfd):
    assert run_command("scan --seconds 0") == 2
    assert "'0' is no time to measure for" in capfd.readouterr().out
