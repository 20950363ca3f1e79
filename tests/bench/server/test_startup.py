"""How long until `import perfkit` returns, and until the command line has printed its help?"""

import subprocess
import sys

import pytest

from perfkit.clock import NS_PER_S, REAL_CLOCK

pytestmark = [pytest.mark.bench, pytest.mark.timeout(120)]

ROUNDS = 9
MOST_IMPORT_S = 0.1
MOST_HELP_S = 0.3


def _timed(words):
    started_ns = REAL_CLOCK.now_ns()
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
    return (REAL_CLOCK.now_ns() - started_ns) / NS_PER_S


def test_start_up(ahead, show, judge):
    programs = {
        "python": ["-c", "pass"],
        "import perfkit": ["-c", "import perfkit"],
        "perfkit --help": ["-m", "perfkit", "--help"],
    }
    seconds = {name: [] for name in programs}
    with ahead():
        for _ in range(ROUNDS):
            for name, words in programs.items():
                seconds[name].append(_timed(words))
    medians = show("Wall time of the whole process, s", seconds, ".3f")
    judge("import perfkit, s, Python's own start included", medians["import perfkit"], most=MOST_IMPORT_S)
    judge("perfkit --help, s, Python's own start included", medians["perfkit --help"], most=MOST_HELP_S)
