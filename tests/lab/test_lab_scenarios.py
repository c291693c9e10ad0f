"""Scenarios in real machines: each fails before its own solution and is met after it, with any seed."""

from __future__ import annotations

import json
import subprocess

import pytest

from jitter_workshop.course.scenarios import load_scenarios
from tests.lab.test_lab_practice import MAIN, VERB, cache, home, wait_until
from tests.terminal import Terminal

__all__ = ["cache", "home"]
pytestmark = pytest.mark.lab

SAMPLE = ("serial-line", "boot-missing")
"""Those that the third ring looks at: one of counts, one that boots anew."""
SEEDS = (1, 2)


def proven(home: dict[str, str], ident: str, seed: int) -> None:
    done = subprocess.run(
        [*VERB, "scenario", ident, "--try", "--seed", str(seed), "--json"],
        env=home,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said = json.loads(done.stdout)
    assert said["proven"] is True
    assert not all(one["met"] for one in said["before"])
    assert all(one["met"] for one in said["after"])


@pytest.mark.parametrize("ident", SAMPLE)
def test_a_scenario_is_not_met_before_its_solution_and_met_after_it(home: dict[str, str], ident: str) -> None:
    proven(home, ident, 1)


@pytest.mark.soak
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("ident", load_scenarios())
def test_each_scenario_with_each_seed(home: dict[str, str], ident: str, seed: int) -> None:
    proven(home, ident, seed)


def test_a_learner_solves_one_in_the_shell_and_it_is_noted(home: dict[str, str]) -> None:
    keep = {name: home[name] for name in home if name.startswith("XDG_") or name == "HOME"}
    shell = Terminal(MAIN, ["practice", "scenario", "huge-pages", "--seed", "5"], **keep)
    try:

        def answers(line: str, expected: bytes) -> None:
            if line:
                shell.type(f"{line}\n")
            wait_until(lambda: (shell.read() and False) or expected in shell.seen, repr(expected))

        answers("", b"What must be true")
        answers("", b"practice:")
        answers("check", b"1 requirement not met yet")
        answers("hint", b"Hint 1 of 2")
        answers("echo never >/sys/kernel/mm/transparent_hugepage/enabled; check", b"Solved.")
        answers("exit", b"huge-pages: solved.")
        assert shell.ended() == 0
    finally:
        shell.close()
    listed = subprocess.run([*VERB, "scenarios", "--json"], env=home, capture_output=True, text=True, check=True)
    assert [one["id"] for one in json.loads(listed.stdout)["scenarios"] if one["solved"]] == ["huge-pages"]
