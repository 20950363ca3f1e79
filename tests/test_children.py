"""Does a child end with its parent, however the parent ends, and only then?"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from perfkit import children

# It waits for nothing that its parent's end would bring: only a signal ends it.
SLEEPER = [sys.executable, "-c", "import threading; print('up', flush=True); threading.Event().wait()"]
ROOT = Path(__file__).resolve().parent.parent

# A parent that starts a child from a thread that has ended by the time the pid is printed.
PARENT = f"""
import threading
from perfkit import children
command = {SLEEPER!r}
child = []
def start():
    import subprocess
    child.append(children.spawn(command, stdout=subprocess.PIPE))
thread = threading.Thread(target=start)
thread.start()
thread.join()
child[0].stdout.readline()
print(child[0].pid, flush=True)
threading.Event().wait()
"""


def is_running(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_child_is_the_command_itself_and_its_exit_code_is_the_commands():
    child = children.spawn(
        [sys.executable, "-c", "import os, sys; print(os.getpid()); sys.exit(7)"], stdout=subprocess.PIPE
    )
    printed, _ = child.communicate(timeout=30)
    assert (int(printed), child.returncode) == (child.pid, 7)


def test_a_command_that_does_not_exist_fails_as_a_child():
    child = children.spawn(["/nonexistent/command"], stderr=subprocess.DEVNULL)
    assert child.wait(30) != 0


def test_what_cannot_be_started_raises_where_it_was_asked_for():
    with pytest.raises(FileNotFoundError):
        children.spawn(["true"], cwd="/nonexistent/folder")
    assert children.spawn(["true"]).wait(30) == 0, "and the next one starts"


def test_a_child_outlives_the_thread_that_started_it():
    started = []
    thread = threading.Thread(target=lambda: started.append(_start_sleeper()))
    thread.start()
    thread.join()
    child = started[0]
    assert child.stdout.readline() == b"up\n"
    assert child.poll() is None
    assert children.stop(child) == -signal.SIGTERM


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM])
def test_a_child_ends_with_its_parent_even_when_a_short_lived_thread_started_it(ending, eventually):
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, cwd=ROOT)
    pid = int(parent.stdout.readline())
    assert is_running(pid)
    os.kill(parent.pid, ending)
    parent.wait(30)
    try:
        eventually(lambda: not is_running(pid))
    finally:
        if is_running(pid):
            os.kill(pid, signal.SIGKILL)


def test_stopping_asks_first_and_kills_who_does_not_listen():
    deaf = "import signal, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); signal.pause()"
    child = children.spawn([sys.executable, "-c", deaf], stdout=subprocess.PIPE)
    child.stdout.readline()
    assert children.stop(child, grace_s=0.1) == -signal.SIGKILL
    assert children.stop(child) == -signal.SIGKILL, "stopping twice is no error"


def test_a_process_that_was_forked_can_start_children_too():
    """The fork inherits the variable that names the spawning thread, but not the thread."""
    children.spawn(["true"]).wait(30)
    code = "import os; from perfkit import children; children.spawn(['true']).wait(); pid = os.fork()\n"
    code += "if pid == 0: os._exit(children.spawn(['true']).wait())\n"
    code += "raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=60, check=False).returncode == 0


def _start_sleeper():
    return children.spawn(SLEEPER, stdout=subprocess.PIPE)
