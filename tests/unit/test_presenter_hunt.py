"""The hunt's words: how this program is called from another terminal."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from jitter_workshop.model.session import HuntOutcome
from jitter_workshop.presenter.course import hunt as words


@pytest.mark.parametrize(
    ("venv", "found", "called"),
    [
        (True, "venv", "path"),
        (True, None, "path"),
        (True, "elsewhere", "jitter-workshop"),
        (False, "elsewhere", "jitter-workshop"),
        (False, None, "path"),
    ],
)
def test_another_terminal_finds_this_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, venv: bool, found: str | None, called: str
) -> None:
    own = tmp_path / "my venv" / "bin" / "jitter-workshop"
    own.parent.mkdir(parents=True)
    own.touch()
    places = {"venv": str(own), "elsewhere": str(tmp_path / "bin" / "jitter-workshop")}
    monkeypatch.setattr(sys, "prefix", str(own.parents[1]))
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path / "usr") if venv else sys.prefix)
    monkeypatch.setattr(shutil, "which", lambda name: places[found] if found else None)
    called = f"'{own}'" if called == "path" else called
    commands = [command for command, _ in words.cures(1)]
    assert f"{called} apply isolation" in commands
    # It asks sudo by itself, and what sudo's own path has is another matter.
    assert not any(command.startswith("sudo ") for command in commands)
    own.unlink()
    assert words.own_command() == "jitter-workshop"


def test_without_another_cpu_there_is_nothing_to_isolate() -> None:
    assert not any("isolation" in command for command, _ in words.cures(None))


def test_a_hunt_whose_noise_was_ended_still_asks_which_one_it_was() -> None:
    ended = cast("Any", SimpleNamespace(state="stopped"))
    assert words.hunt_state(ended) == "The hidden noise has ended, so no time is taken any more. Which noise was it?"


def test_a_setting_that_keeps_noises_away_is_named_with_the_way_to_restore_it() -> None:
    assert words.kept_away((), "restore it") == ""
    assert words.kept_away(("isolation",), "restore it") == (
        "Applied now: isolation. This keeps noises off the measured CPU. Before you measure, restore it."
    )


def test_after_a_hunt_its_noise_is_told_with_its_sign() -> None:
    hunts = [HuntOutcome("timer", named=True), HuntOutcome("greedy", named=False)]
    head, *told = [line.plain for line in words.last_noise(hunts, 200)]
    assert head == "THE NOISE OF YOUR LAST HUNT: A GREEDY THREAD"
    assert " • How to find it: Another task runs on the hot CPU and on no other CPU." in told
    assert words.last_noise([], 200) == []
    assert words.last_noise([HuntOutcome("unknown", named=True)], 200) == []
