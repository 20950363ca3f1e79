"""Is what the README says about names, commands and dependencies still so?"""

from __future__ import annotations

import argparse
import ast
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import perfkit
from perfkit.showing.cli.main import COMMANDS, _parse

ROOT = Path(perfkit.__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def section(title: str) -> str:
    """The text below a heading, up to the next of its kind."""
    return README.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def rows(text: str) -> list[list[str]]:
    """The cells of a table's rows, without its head."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def blocks(language: str) -> list[str]:
    """The code blocks in a language."""
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def commands() -> Iterator[str]:
    """Every `perfkit …` command, in blocks and in lines."""
    for block in blocks("sh"):
        yield from (line.partition("#")[0].strip() for line in block.splitlines() if line.startswith("perfkit "))
    yield from re.findall(r"`(perfkit [^`\n]+)`", README)


def package_name(requirement: str) -> str:
    return re.split(r"[\s<>=!~;\[]", requirement, maxsplit=1)[0].lower()


def test_every_public_name_stands_in_the_table_and_nothing_else_does():
    named = [name for cells in rows(section("The Python names")) for name in re.findall(r"`(\w+)`", cells[0])]
    assert sorted(named) == perfkit.__all__


@pytest.mark.parametrize("command", sorted(set(commands())))
def test_every_command_in_the_readme_can_be_read(command: str):
    words = shlex.split(command.replace("…", ""))[1:]
    assert words[0] in COMMANDS
    options = _parse(words)
    assert isinstance(options, argparse.Namespace)


def test_every_command_that_there_is_is_shown():
    shown = {shlex.split(command)[1] for command in commands()}
    assert set(COMMANDS) <= shown


def test_python_blocks_are_python_and_use_names_that_there_are():
    names: set[str] = set()
    for block in blocks("python"):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "perfkit":
                names.add(node.attr)
    assert names != set()
    assert names <= set(perfkit.__all__)


def test_make_targets_in_the_readme_are_in_the_makefile():
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    assert set(re.findall(r"\bmake (\w+)", README)) <= targets


def test_the_table_of_dependencies_is_the_projects_list():
    named = {name.strip() for cells in rows(section("Dependencies")) for name in cells[0].split(",")}
    assert named == {package_name(requirement) for requirement in PROJECT["dependencies"]}


def test_the_dependencies_for_development_are_the_projects_list():
    line = next(line for line in section("Dependencies").splitlines() if line.startswith("For development: "))
    plain = re.sub(r"\([^)]*\)", "", line.removeprefix("For development: ").rstrip("."))
    named = {name.strip() for name in plain.split(",")}
    assert named == {package_name(requirement) for requirement in PROJECT["optional-dependencies"]["dev"]}


def test_pictures_and_files_that_the_readme_points_to_are_there():
    paths = re.findall(r"\]\(([^)]+)\)", README) + re.findall(r"`((?:perfkit|notebooks|data)/[\w./-]+)`", README)
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_the_stages_and_grades_in_the_readme_are_the_programs():
    assert {"sound", "short", "unsteady", "void"} == set(re.findall(r"\*(sound|short|unsteady|void)\*", README))
