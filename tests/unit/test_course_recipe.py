"""The recipe of *make it last* sets what its own check after the reboot asks for."""

from __future__ import annotations

import tomllib
from pathlib import Path

LESSON = Path(__file__).resolve().parents[2] / "lessons" / "20-make-it-last" / "lesson.toml"
ELSEWHERE = {"stat-interval", "nohz-full"}
"""Settings that another line of the recipe makes: a file of sysctl.d, and the boot parameters."""


def test_the_check_after_the_reboot_asks_only_for_what_the_recipe_sets() -> None:
    commands = [one["command"] for one in tomllib.loads(LESSON.read_text())["by_hand"]]
    (check,) = (c for c in commands if c.startswith("jitter-workshop status "))
    (profile,) = (c for c in commands if "tee /etc/quiet.profile" in c)
    asked = set(check.partition(";")[0].split()[2:])
    applied = set(profile.partition("|")[0].split()[2:])
    assert asked - ELSEWHERE <= applied
    others = " ".join(c for c in commands if c not in (check, profile))
    assert "stat_interval" in others
    assert "nohz-full" in others or "nohz_full" in others
