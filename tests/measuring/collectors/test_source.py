"""Is the state of the code under test told as git knows it, and nothing where git knows nothing?"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from perfkit.measuring.collectors.source import folder_of_model, folder_of_process, read_source


@pytest.fixture
def repository(tmp_path):
    """A repository with one commit, whose package `kept` is part of it and whose `installed` is ignored."""
    top = tmp_path / "shop"
    for name in ("kept", "installed"):
        (top / name).mkdir(parents=True)
        (top / name / "model.py").write_text("")
    (top / ".gitignore").write_text("installed/\n")
    git(top, "init", "--quiet", "--initial-branch", "main")
    git(top, "add", ".")
    git(top, "-c", "user.name=test", "-c", "user.email=test@localhost", "commit", "--quiet", "--message", "first")
    return top


def git(folder, *words):
    return subprocess.run(["git", "-C", folder, *words], check=True, capture_output=True, text=True).stdout.strip()


def test_a_clean_repository_tells_commit_branch_and_name(repository):
    commit = git(repository, "rev-parse", "HEAD")
    expected = {"commit": commit, "dirty": False, "branch": "main", "repository": "shop"}
    assert read_source(repository / "kept") == expected
    (repository / "run.log").write_text("what git does not keep makes nothing dirty")
    assert read_source(repository / "kept") == expected


def test_a_change_of_a_kept_file_makes_it_dirty_and_a_detached_head_has_no_branch(repository):
    git(repository, "checkout", "--quiet", "--detach")
    (repository / "kept" / "model.py").write_text("changed = True\n")
    found = read_source(repository / "kept")
    assert (found["dirty"], found["branch"]) == (True, None)


def test_nothing_is_told_outside_of_a_repository_or_of_what_it_ignores(repository, tmp_path):
    (tmp_path / "plain").mkdir()
    assert read_source(tmp_path / "plain") == {}
    assert read_source(repository / "installed") == {}
    assert read_source(repository / "absent") == {}
    assert read_source(None) == {}


def test_a_machine_without_git_tells_nothing(repository, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert read_source(repository / "kept") == {}


def test_a_repository_cannot_run_its_own_commands(repository, tmp_path):
    """Asking for the state of a stranger's checkout must not start what its configuration names."""
    mark = tmp_path / "mark"
    script = tmp_path / "monitor.sh"
    script.write_text(f"#!/bin/sh\ntouch {mark}\n")
    script.chmod(0o755)
    git(repository, "config", "core.fsmonitor", str(script))
    assert read_source(repository / "kept")["dirty"] is False
    assert not mark.exists()
    git(repository, "status")
    assert mark.exists()  # else nothing was shown


def test_a_models_folder_is_found_by_name_without_importing_it(repository, monkeypatch):
    (repository / "kept" / "__init__.py").write_text("raise SystemExit")
    (repository / "single.py").write_text("raise SystemExit")
    monkeypatch.syspath_prepend(str(repository))
    assert folder_of_model("kept.model:Model") == repository / "kept"
    assert folder_of_model("single:Model") == repository
    assert "kept" not in sys.modules
    assert folder_of_model("noop") == folder_of_model("simulated:gpu")
    assert folder_of_model("absent.module:Model") is None
    assert folder_of_model("no/name") is None


def test_a_process_is_where_it_works():
    assert str(folder_of_process(os.getpid())) == os.getcwd()
    assert folder_of_process(2**30) is None
