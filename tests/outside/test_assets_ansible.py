"""The playbooks that come with the tool: what they may say."""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from jitter_workshop.classroom import bundle
from jitter_workshop.commands import class_
from jitter_workshop.commands.classes import host, turn

FOLDER = Path(__file__).parents[2] / "assets" / "ansible"
PLAYBOOKS = ("check.yml", "gather.yml", "install.yml", "remove.yml", "say.yml")
FILES = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.yml"))
_KEYWORDS = {
    "always", "become", "block", "changed_when", "check_mode", "delegate_to", "failed_when", "loop", "loop_control",
    "name", "register", "rescue", "vars", "when",
}  # fmt: skip


README = (FOLDER / "README.md").read_text("utf-8")


def read(name: str) -> Any:
    return yaml.safe_load((FOLDER / name).read_text("utf-8"))


def tasks(found: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for one in found:
        inner = [task for part in ("block", "rescue", "always") for task in one.get(part, [])]
        yield one
        yield from tasks(inner)


def every_task() -> list[tuple[str, dict[str, Any]]]:
    plays = [(name, task) for name in PLAYBOOKS for play in read(name) for task in tasks(play.get("tasks", []))]
    roles = [name for name in FILES if "/tasks/" in name]
    return plays + [(name, task) for name in roles for task in tasks(read(name))]


def module(task: dict[str, Any]) -> str | None:
    """The module that a task calls; None for a block."""
    words = set(task) - _KEYWORDS
    assert len(words) == (0 if "block" in task else 1), f"{task['name']}: {sorted(words)}"
    return words.pop() if words else None


def test_there_are_the_playbooks_that_are_described() -> None:
    assert sorted(path.name for path in FOLDER.glob("*.yml")) == list(PLAYBOOKS)
    assert set(re.findall(r"\b[a-z_]+\.yml\b", README)) - {"members.yml", "argument_specs.yml"} == set(PLAYBOOKS)


@pytest.mark.parametrize("name", FILES)
def test_each_file_is_yaml(name: str) -> None:
    assert read(name)


def test_only_modules_of_ansible_core_are_called() -> None:
    called = {module(task) for _, task in every_task()} - {None}
    assert called
    assert all(name is not None and name.startswith("ansible.builtin.") for name in called)


def test_no_shell_and_no_error_is_passed_over() -> None:
    found = every_task()
    assert len(found) > 15
    for where, task in found:
        assert module(task) not in ("ansible.builtin.shell", "ansible.builtin.raw", "ansible.builtin.script"), where
        assert "ignore_errors" not in task, where
        assert "ignore_unreachable" not in task, where
    assert not any("ignore_unreachable" in play or "ignore_errors" in play for n in PLAYBOOKS for play in read(n))


def test_a_command_tells_if_it_changes_something_and_its_words_are_a_list() -> None:
    commands = [task for _, task in every_task() if module(task) == "ansible.builtin.command"]
    assert commands
    for task in commands:
        assert "changed_when" in task, task["name"]
        words = dict(task["ansible.builtin.command"])
        argv = words.pop("argv")
        assert words in ({}, {"expand_argument_vars": False}), task["name"]
        # A command that is made of an instructor's words must not be read as a variable of root's.
        assert isinstance(argv, list) or words, task["name"]


def test_an_error_that_is_held_back_is_told_by_a_later_task() -> None:
    for name in PLAYBOOKS:
        found = [task for play in read(name) for task in tasks(play.get("tasks", []))]
        held = [task["register"] for task in found if task.get("failed_when") is False]
        told = str([task for task in found if module(task) == "ansible.builtin.assert"])
        assert all(re.search(rf"\b{one}\b", told) for one in held), name


def test_say_knows_the_words_that_the_verbs_know() -> None:
    """Its variables, and each verb and option that it calls, are those of ``class``."""
    (play,) = read("say.yml")
    text = (FOLDER / "say.yml").read_text("utf-8")
    assert play["vars"] == {"say": "present", "chapter": "", "step": "", "words": ""}
    of_present = {flags.removeprefix("--") for flags, takes, _ in class_._OPTIONS if "present" in takes}
    assert set(re.findall(r"'--(\w+)'", text)) == of_present
    assert set(re.findall(r"say=(\w+)", text)) - {"clear"} <= set(turn.TURN_ACTIONS)
    lines = re.findall(r"-i inventory say.yml (.*)", README)
    assert len(lines) == 5
    assert all(set(re.findall(r"-e '?\{?\"?(\w+)", line)) <= set(play["vars"]) for line in lines)


def test_the_role_lists_its_options() -> None:
    role = "roles/jitter_workshop"
    options = read(f"{role}/meta/argument_specs.yml")["argument_specs"]["main"]["options"]
    assert {name: option["default"] for name, option in options.items()} == read(f"{role}/defaults/main.yml")


def test_a_second_install_is_known_by_the_answer_of_class_init() -> None:
    """The role reports a change unless the script says that there was nothing to do."""
    (words,) = re.findall(r"'([^']+)' not in", (FOLDER / "roles/jitter_workshop/tasks/main.yml").read_text("utf-8"))
    assert host.ALREADY.endswith(words)


def test_they_are_in_the_archive_that_they_install(tmp_path: Path) -> None:
    out = tmp_path / "class.tar.gz"
    bundle.write_bundle(out, b'name = "x"\n')
    with tarfile.open(fileobj=io.BytesIO(out.read_bytes())) as archive:
        names = archive.getnames()
    assert {f"jitter-workshop-class/ansible/{name}" for name in (*FILES, "README.md")} <= set(names)
