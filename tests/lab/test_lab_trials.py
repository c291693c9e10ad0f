"""The chapters whose levers most hosts lack, tried on a real kernel, by counts that an emulator does not distort."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.lab.machine import Machine
from tests.lab.shapes import TRUSTED
from tests.lab.test_lab_boot import settings

pytestmark = pytest.mark.lab

HOT = "2-3"
KEPT = "/home/course"
"""A folder that a reboot of the lab machine keeps."""
BOOT = f"nohz_full={HOT} rcu_nocbs={HOT} irqaffinity=0-1 {TRUSTED}"
"""A kernel that finds its clock wrong, as under load in an emulator, keeps every tick."""


def tried(machine: Machine, chapter: str, *words: str) -> dict[str, Any]:
    """The result of a trial in the guest; ``plans``: the writes that it showed before it made them."""
    program = [machine.python, "-m", "jitter_workshop", "lessons", "try", chapter, "--json"]
    done = machine.run(["env", f"XDG_STATE_HOME={KEPT}", *program, *words], timeout_s=1_800)
    assert done.stdout, done.stderr
    found: dict[str, Any] = done.json() | {"plans": done.stderr}
    print(chapter, found)
    assert done.code == (0 if found["shown"] else 1)
    return found


SHORT = ("--duration", "2")
LEAST_ROUNDS = 10
"""Fewer rounds cannot show an effect in nine rounds of ten."""
ROUNDS = str(max(int(os.environ.get("TRIAL_ROUNDS") or LEAST_ROUNDS), LEAST_ROUNDS))


@contextmanager
def lowest_frequency(machine: Machine) -> Iterator[None]:
    """Keep all CPUs at their lowest frequency. A governor that follows the load would choose a high one before the
    change, too, where a busy host makes the emulated CPUs slow."""
    policies = [f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor" for cpu in range(4)]
    before = {path: machine.read(path).strip() for path in policies}
    try:
        for path in policies:
            machine.write(path, "powersave")
        yield
    finally:
        for path, governor in before.items():
            machine.write(path, governor)


def arrives_at(machine: Machine, name: str) -> set[str]:
    """The CPUs at which the interrupts of this name arrive now."""
    rows = [line.split() for line in machine.read("/proc/interrupts").splitlines()]
    numbers = [row[0].rstrip(":") for row in rows if row[-1].endswith(name)]
    return {machine.read(f"/proc/irq/{one}/effective_affinity_list") for one in numbers}


def test_the_governor_shows_its_effect_and_leaves_nothing(lab: Machine) -> None:
    with lab.unchanged(), lowest_frequency(lab):
        found = tried(lab, "governor", *SHORT)
    assert found["shown"], found


def test_idle_states_show_their_effect_and_leave_nothing(lab: Machine) -> None:
    with lab.unchanged():
        found = tried(lab, "idle-states", *SHORT)
    assert found["shown"], found


@pytest.mark.soak
def test_the_governor_shows_its_effect_in_nine_rounds_of_ten(lab: Machine) -> None:
    with lab.unchanged(), lowest_frequency(lab):
        found = tried(lab, "governor", *SHORT, "--rounds", ROUNDS)
    assert found["shown"], found


@pytest.mark.soak
def test_idle_states_show_their_effect_in_nine_rounds_of_ten(lab: Machine) -> None:
    with lab.unchanged():
        found = tried(lab, "idle-states", *SHORT, "--rounds", ROUNDS)
    assert found["shown"], found


def test_the_interrupt_of_a_shared_folder_is_sent_to_the_hot_cpu_before_it_leaves_all_hot_cpus(lab: Machine) -> None:
    by_chance = HOT.split("-")[0] in arrives_at(lab, "-requests")
    with lab.unchanged():
        found = tried(lab, "interrupts", *SHORT)
    assert found["shown"], found
    assert by_chance or "irq-here" in found["plans"], found


@pytest.mark.soak
def test_interrupts_leave_the_hot_cpus_in_nine_rounds_of_ten(lab_factory: Callable[..., Machine]) -> None:
    machine = lab_factory(append=TRUSTED)
    with machine.unchanged():
        told = tried(machine, "interrupts", *SHORT, "--rounds", ROUNDS)
    assert told["shown"], told


@pytest.mark.soak
def test_system_calls_show_their_effect_in_nine_rounds_of_ten(lab_factory: Callable[..., Machine]) -> None:
    machine = lab_factory(append=TRUSTED)
    with machine.unchanged():
        found = tried(machine, "system-calls", *SHORT, "--rounds", ROUNDS)
    assert found["shown"], found


@pytest.mark.soak
def test_the_tick_is_tried_in_two_halves_with_a_boot_between(lab_factory: Callable[..., Machine]) -> None:
    machine = lab_factory(disk=True)
    machine.call(settings)
    kept = ("--session", "boots", "--rounds", ROUNDS, *SHORT)
    first = tried(machine, "tick", "--half", "before", *kept)
    assert first["rounds"] == 0, first
    machine.reboot(append=BOOT)
    second = tried(machine, "tick", "--half", "after", *kept)
    assert second["shown"], second
