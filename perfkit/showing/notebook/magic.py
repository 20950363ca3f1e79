"""How does a notebook cell call the command line? `%load_ext perfkit`, then `%perfkit scan --vary workers=1,2`.

The command runs in a process of its own: a notebook must not share its interpreter with what measures.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from typing import Any

from perfkit import children
from perfkit.showing.notebook.display import register

_WIDTH = "160"  # columns: a page scrolls sideways, a wrapped table cannot be read


def load_ipython_extension(shell: Any) -> None:
    """What `%load_ext perfkit` calls."""
    register(shell)
    shell.register_magic_function(run_command, "line", "perfkit")


def run_command(line: str) -> int | None:
    """Run a perfkit command and show what it prints; returns its exit code when that is not 0."""
    process = children.spawn(
        [sys.executable, "-m", "perfkit", *shlex.split(line)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=os.environ | {"COLUMNS": _WIDTH, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    try:
        for text in process.stdout:
            sys.stdout.write(text.decode("utf-8", "replace"))
    except KeyboardInterrupt:
        process.send_signal(signal.SIGINT)
        sys.stdout.write(process.stdout.read().decode("utf-8", "replace"))
    return process.wait() or None
