"""The recipe of *make it last* sets what its own check after the reboot asks for, and each of its files is read."""

from __future__ import annotations

import shlex
import tomllib
from pathlib import Path
from typing import Any

from jitter_workshop.course.loader import load_course

LESSON = Path(__file__).resolve().parents[2] / "lessons" / "19-make-it-last" / "lesson.toml"
ELSEWHERE = {"stat-interval", "nohz-full"}
"""Settings that another line of the recipe makes: a file of sysctl.d, and the boot parameters."""


def recipe() -> list[dict[str, Any]]:
    commands: list[dict[str, Any]] = tomllib.loads(LESSON.read_text())["by_hand"]
    return commands


def test_the_check_after_the_reboot_asks_only_for_the_settings_of_the_recipe() -> None:
    commands = [one["command"] for one in recipe()]
    (check,) = (c for c in commands if c.startswith("jitter-workshop status "))
    (profile,) = (c for c in commands if "tee /etc/quiet.profile" in c)
    asked = set(check.partition(";")[0].split()[2:])
    applied = set(profile.partition("|")[0].split()[2:])
    assert asked - ELSEWHERE <= applied
    others = " ".join(c for c in commands if c not in (check, profile))
    assert "stat_interval" in others
    assert "nohz-full" in others or "nohz_full" in others


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
