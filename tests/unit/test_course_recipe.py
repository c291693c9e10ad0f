"""The recipe of *make it last* sets what its own check after the reboot asks for, and each of its files is read."""

from __future__ import annotations

import shlex
import tomllib
from pathlib import Path
from typing import Any

from jitter_workshop.course.loader import load_course

LESSON = Path(__file__).resolve().parents[2] / "lessons" / "19-make-it-last" / "lesson.toml"
ELSEWHERE = {
    "stat-interval": "vm.stat_interval",
    "thp": "transparent_hugepage/enabled",
    "pm-qos-resume": "pm_qos_resume_latency_us",
    "nohz-full": "apply --next-boot nohz-full",
    "rcu-nocbs": "rcu-nocbs --cpus",
}
"""Settings that other lines of the recipe make: id -> words of this line."""


def recipe() -> list[dict[str, Any]]:
    commands: list[dict[str, Any]] = tomllib.loads(LESSON.read_text())["by_hand"]
    return commands


def test_the_check_after_the_reboot_asks_for_the_settings_of_the_recipe() -> None:
    """It asks for each of them, and for no other one."""
    commands = [one["command"] for one in recipe()]
    (check,) = (c for c in commands if c.startswith("jitter-workshop status "))
    (profile,) = (c for c in commands if "tee /etc/quiet.profile" in c)
    asked = check.partition(";")[0].removeprefix("jitter-workshop status --cpus {cpus} ").split()
    applied = profile.partition("|")[0].split()[2:]
    assert sorted(asked) == sorted([*applied, *ELSEWHERE])
    others = [c for c in commands if c not in (check, profile)]
    for ident, words in ELSEWHERE.items():
        assert sum(words in c and "rm -f" not in c for c in others) == 1, ident


def test_the_recipe_moves_interrupts_as_its_chapter_does() -> None:
    """The chapter on interrupts says that neither setting is enough alone."""
    profile = next(one["command"] for one in recipe() if "tee /etc/quiet.profile" in one["command"])
    interrupts = load_course().chapter("interrupts")
    assert interrupts is not None
    assert set(interrupts.tunables) == {"irqbalance", "irq-affinity"}
    assert set(interrupts.tunables) <= set(profile.split())


def test_each_line_of_the_recipe_that_sets_hot_cpus_names_them() -> None:
    """Without the CPUs, a unit that runs after a change of the host could choose other ones."""
    for one in recipe():
        if "jitter-workshop apply " in one["command"]:
            assert "--cpus {cpus}" in one["command"], one["command"]


def test_a_command_that_writes_a_file_is_checked_by_the_contents_of_the_file() -> None:
    """A file of the same name with another text is not what the command made."""
    for chapter in load_course().chapters:
        for one in chapter.by_hand:
            path = one.check.removeprefix("file:")
            assert one.check == path or f"tee {path}" not in one.command, one.command
    made = {
        check.removeprefix("holds:").partition("=")[0]: (command, check.partition("=")[2].splitlines())
        for command, check in ((one["command"], one.get("check", "")) for one in recipe())
        if check.startswith("holds:/etc/") and "tee /etc/" in command and "tuned" not in command
    }
    assert len(made) == 5
    for path, (command, wanted) in made.items():
        assert f"tee {path}" in command
        said = shlex.split(command.partition(" | sudo tee")[0])
        written = said[2:] if said[0] == "printf" else said[1:]
        assert set(wanted) <= set(written), path
