"""Boot parameters across a reboot: staged by GRUB's settings, in effect in the next boot, taken away again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jitter_workshop.tuning.tunables.boot_parameters import LATER
from tests.lab import placing
from tests.lab.machine import Machine
from tests.lab.placing import do

pytestmark = pytest.mark.lab

HOT = "2-3"
IDS = ["isolcpus", "nohz-full", "rcu-nocbs", "irqaffinity"]
DROPINS = "/etc/default/grub.d"


def settings() -> None:
    """(In the guest) the files by which a Debian host with GRUB is known; /usr is the test runner's own."""
    import os

    os.makedirs("/etc/default/grub.d", exist_ok=True)
    with open("/etc/os-release", "w") as file:
        file.write('ID=debian\nPRETTY_NAME="Debian GNU/Linux"\n')
    with open("/etc/default/grub", "w") as file:
        file.write('GRUB_CMDLINE_LINUX="console=ttyS0"\nGRUB_CMDLINE_LINUX_DEFAULT="quiet"\n')
    os.sync()


def ticks(cpu: int) -> int:
    """(In the guest) local timer interrupts of a CPU in a second in which one pinned thread keeps it busy."""
    import os
    import time

    def count() -> int:
        with open("/proc/interrupts") as file:
            return next(int(line.split()[cpu + 1]) for line in file if line.split()[0] == "LOC:")

    def spin(seconds: float) -> None:
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            pass

    os.sched_setaffinity(0, {cpu})
    spin(0.5)
    before = count()
    spin(1)
    return count() - before


def test_the_next_boot_has_the_staged_parameters(lab_factory: Callable[..., Machine]) -> None:
    machine = lab_factory(disk=True)
    machine.call(settings)
    if machine.run(["sh", "-c", "test -x /usr/sbin/update-grub"]).code != 0:
        pytest.skip("update-grub is not here (install grub2-common): this guest shares the test runner's /usr")
    states = do(machine, placing.assess, HOT, IDS)
    assert {state for state, _ in states.values()} == {"improve"}, states
    made = do(machine, placing.apply, HOT, IDS)
    assert made["refused"].keys() <= {"update-grub"}  # which has no boot disk here
    assert [change["kind"] for change in made["changes"]] == ["grub"] * 4
    waiting = do(machine, placing.assess, HOT, IDS)
    assert all(LATER in reason for _, reason in waiting.values()), waiting
    assert do(machine, placing.apply, HOT, IDS)["changes"] == []

    # The parameters that GRUB's menu would hold: the same shell settings that grub-mkconfig reads, in the same order.
    read = (
        'set -e; . /etc/default/grub; for x in /etc/default/grub.d/*.cfg; do . "$x"; done; echo "$GRUB_CMDLINE_LINUX"'
    )
    line = machine.run(["sh", "-c", read], check=True).stdout.strip()
    assert line == ("console=ttyS0 irqaffinity=0-1 isolcpus=managed_irq,domain,2-3 nohz_full=2-3 rcu_nocbs=2-3")
    machine.reboot(append=line.removeprefix("console=ttyS0 "))

    states = do(machine, placing.assess, HOT, IDS)
    assert {state for state, _ in states.values()} == {"ok"}, states
    assert machine.read("/sys/devices/system/cpu/nohz_full") == "2-3"
    assert machine.call(ticks, 3) * 10 < machine.call(ticks, 1)
    assert do(machine, placing.undo, made["changes"]) == []
    assert machine.list_dir(DROPINS) == []
    assert do(machine, placing.apply, HOT, IDS)["changes"] == [], "what runs already is not staged once more"
