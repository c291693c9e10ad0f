"""The documents name only what exists: the tests of the threat model, and the command lines of teaching."""

from __future__ import annotations

import importlib
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from jitter_workshop.commands.common.base import VERBS, verb_parser
from jitter_workshop.host.classfile import PRESETS

REPOSITORY = Path(__file__).parents[2]


def all_tests() -> set[str]:
    found: set[str] = set()
    for file in (REPOSITORY / "tests").rglob("test_*.py"):
        found |= set(re.findall(r"^(?:async )?def (test_\w+)", file.read_text(), re.MULTILINE))
    return found


def test_each_test_that_the_threat_model_names_is_there() -> None:
    text = (REPOSITORY / "docs" / "safety.md").read_text()
    named = set(re.findall(r"`(test_\w+)`", text))
    assert len(named) > 30
    assert named - all_tests() == set()


def test_each_line_of_the_threat_model_names_a_test() -> None:
    text = (REPOSITORY / "docs" / "safety.md").read_text()
    tables = re.findall(r"^\| somebody tries to .*?(?=\n\n)", text, re.MULTILINE | re.DOTALL)
    lines = [line for table in tables for line in table.splitlines()[2:]]
    assert len(lines) > 20
    assert [line for line in lines if "`test_" not in line.rsplit("|", 2)[1]] == []


def test_each_line_of_the_platforms_names_tests_that_are_there() -> None:
    text = (REPOSITORY / "docs" / "platforms.md").read_text()
    tables = re.findall(r"^\| what \|.*?(?=\n\n|\n?\Z)", text, re.MULTILINE | re.DOTALL)
    lines = [line for table in tables for line in table.splitlines()[2:]]
    words = set(
        re.findall(r"^\| (\w[\w ]*) \| .* \|$", text.partition("| word |")[2].partition("## ")[0], re.MULTILINE)
    )
    assert words == {"here", "booted", "emulated", "made tree"}
    assert len(lines) > 20
    for line in lines:
        _, _, _, how, tests, _ = (part.strip() for part in line.split("|"))
        assert how in words, line
        assert set(re.findall(r"`(test_\w+)`", tests)) - all_tests() == set(), line
        assert re.fullmatch(r"(`test_\w+` ?)+", tests), line


def command_lines(file: str) -> list[str]:
    """Return what is typed: each `jitter-workshop …`, as far as the shell gives it to the tool."""
    text = (REPOSITORY / "docs" / file).read_text()
    found = re.findall(r"`(?:sudo )?jitter-workshop ([^`]+)`", text)
    return sorted({re.split(r" [>|] |;|&&", one)[0].strip() for one in found})


@pytest.mark.parametrize("line", command_lines("teaching.md"))
def test_each_command_of_teaching_is_one(line: str) -> None:
    verb, *words = shlex.split(line)
    assert verb in VERBS
    module = importlib.import_module(
        f"jitter_workshop.commands.{'class_' if verb == 'class' else verb.replace('-', '_')}"
    )
    parser = verb_parser(verb, module.__doc__)
    module.add_arguments(parser)
    parser.parse_args(words)


def test_the_class_file_of_teaching_is_one() -> None:
    from jitter_workshop.host.classfile import parse_class

    text = (REPOSITORY / "docs" / "teaching.md").read_text()
    block = re.search(r"```toml\n(.*?)```", text, re.DOTALL)
    assert block is not None
    made = parse_class("\n".join(line.strip() for line in block[1].splitlines()).encode())
    assert made.preset in PRESETS
    assert made.instructors == ("ada",)


def test_the_map_of_the_house_is_that_of_the_code() -> None:
    done = subprocess.run([sys.executable, str(REPOSITORY / "scripts" / "rooms.py")], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("", 0)


def test_each_place_that_the_map_names_is_there() -> None:
    text = (REPOSITORY / "docs" / "architecture.md").read_text()
    named = sorted(set(re.findall(r"`([a-z_/]+\.(?:py|c|h))`", text)))
    folders = ("jitter_workshop", ".", "native", "jitter_workshop/report/pictures")
    assert len(named) > 40
    assert [name for name in named if not any((REPOSITORY / folder / name).is_file() for folder in folders)] == []


def test_the_map_names_the_verbs_that_reach_the_screen() -> None:
    text = (REPOSITORY / "docs" / "architecture.md").read_text()
    sentence = text.partition("Of `commands` only ")[2].partition(" reach `tui`")[0]
    code = REPOSITORY / "jitter_workshop" / "commands"
    reach = {file for file in code.rglob("*.py") if "jitter_workshop.tui" in file.read_text()}
    assert set(re.findall(r"`([\w/]+)`", sentence)) == {f.relative_to(code).with_suffix("").as_posix() for f in reach}


def test_an_installed_copy_has_each_package() -> None:
    """A checkout finds its packages by itself; a wheel has those that are listed."""
    listed = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    found = {file.parent for file in (REPOSITORY / "jitter_workshop").rglob("__init__.py")}
    names = {".".join(folder.relative_to(REPOSITORY).parts) for folder in found}
    assert set(listed) == names | {"jitter_workshop.assets", "jitter_workshop.lessons"}
