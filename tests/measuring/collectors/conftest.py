"""Python processes to watch, ended by their own id."""

import subprocess
import sys

import pytest

STORY = """
import sys, threading, time

def burn():
    while True:
        sum(range(1000))

def nap():
    while True:
        time.sleep(0.02)

threading.Thread(target=burn, name="burner", daemon=True).start()
threading.Thread(target=nap, name="napper", daemon=True).start()
print("up", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def start_python():
    """A function that starts Python code as a process and waits for its first line."""
    started = []

    def start(code=STORY):
        child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        started.append(child)
        assert child.stdout.readline() == b"up\n"
        return child

    yield start
    for child in started:
        child.kill()
        child.communicate()


@pytest.fixture
def plant(tmp_path):
    """A function that writes files below a root of their own: plant({"proc/stat": "cpu …"}) -> root."""

    def write(files):
        for name, text in files.items():
            path = tmp_path / "root" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        return tmp_path / "root"

    return write
