"""The course on a real kernel: what a chapter applied is given back when the workshop is left, and a chapter of
boot parameters goes on behind a reboot."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.lab.machine import Machine
from tests.lab.test_lab_boot import DROPINS, settings

pytestmark = [pytest.mark.lab, pytest.mark.soak]

GOVERNOR = "/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor"

CHAPTER = """
import json, sys
from jitter_workshop.flow.chapters.workshop import Workshop
workshop = Workshop.open("lab")
walk = workshop.walk(sys.argv[1])
told = {"rebooted": walk.rebooted(), "here": walk.host.reason == ""}
if "apply" in sys.argv:
    view = walk.apply()
    told |= {"applied": view.applied, "refused": view.refused, "settled": view.settled, "reboot": view.needs_reboot}
    told |= {"standing": [one["id"] for one in workshop.context.standing()]}
    with open("/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor") as file:
        told["governor"] = file.read().strip()
told |= {"marks": walk.progress.marks, "resumable": workshop.resumable(), "text": walk.page("look")}
if "keep" in sys.argv:
    workshop.context.agent_connection.keep()
back = workshop.close()
told |= {"back": len(back.restored), "left": [one.reason for one in back.left_alone]}
print(json.dumps(told))
"""


def chapter(machine: Machine, *words: str) -> dict[str, Any]:
    """A chapter of the built-in course in the guest, in one process."""
    argv = ["env", "XDG_STATE_HOME=/home/course", machine.python, "-c", CHAPTER, *words]
    told: dict[str, Any] = json.loads(machine.run(argv, check=True).stdout)
    return told


def test_leaving_the_workshop_restores_the_changes_of_a_chapter(lab: Machine) -> None:
    with lab.unchanged():
        told = chapter(lab, "governor", "apply")
        assert (told["here"], told["refused"], told["settled"]) == (True, [], True), told
        assert told["governor"] == "performance"
        assert told["marks"]["setting"] is True
        assert "governor" in told["standing"]
        assert (told["back"], told["left"]) == (told["applied"], [])
        # The next start offers it again.
        assert "governor=performance" in chapter(lab, "governor")["resumable"]
    with lab.unchanged():
        kept = chapter(lab, "governor", "apply", "keep")
        assert kept["back"] == 0
        assert lab.read(GOVERNOR) == "performance"
        assert lab.workshop("restore", "--json").code == 0
    lab.run(["rm", "-rf", "/home/course"], check=True)


def test_boot_parameters_are_verified_behind_the_reboot(lab_factory: Callable[..., Machine]) -> None:
    machine = lab_factory(disk=True)
    machine.call(settings)
    told = chapter(machine, "tick", "apply")
    assert (told["here"], told["reboot"]) == (True, True), told
    assert told["back"] == 0, "what waits for a boot is not given back on leaving"
    again = chapter(machine, "tick")
    assert "reboot, then start" in again["rebooted"]
    read = 'for x in /etc/default/grub.d/*.cfg; do . "$x"; done; echo "$GRUB_CMDLINE_LINUX"'
    line = machine.run(["sh", "-c", read], check=True).stdout.strip()
    assert "nohz_full=" in line
    machine.reboot(append=line)
    after = chapter(machine, "tick")
    assert "boot parameters are in effect" in after["rebooted"], after
    assert after["marks"]["setting"] is True
    assert machine.workshop("restore", "--json").json()["needs_reboot"] is True
    assert machine.list_dir(DROPINS) == []
