"""Boot parameters for one boot across real reboots. GRUB itself does not run here (QEMU loads the kernel): ``grub``
does with the guest's own files what GRUB's menu would do at each start, with GRUB's own tool."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jitter_workshop.flow.chapters.chapter_host import NOT_IN_EFFECT
from tests import madegrub
from tests.lab.machine import Machine
from tests.lab.test_lab_boot import settings
from tests.lab.test_lab_course import chapter

pytestmark = [pytest.mark.lab, pytest.mark.soak]

FOLDER = "/boot/grub"
ENTRIES = madegrub.entry("Debian GNU/Linux", "gnulinux-simple-1", "/boot/vmlinuz quiet loglevel=4")


def grub() -> str:
    """(In the guest) the parameters of the entry that GRUB boots next: ``next_entry`` where one is chosen, which it
    forgets first, else its default. As 00_header and 41_custom of grub-mkconfig have it."""
    import os
    import subprocess

    block = "/boot/grub/grubenv"
    told = subprocess.run(["/usr/bin/grub-editenv", block, "list"], capture_output=True, text=True, check=True).stdout
    chosen = next((line[11:] for line in told.splitlines() if line.startswith("next_entry=")), "")
    entries = [("gnulinux-simple-1", "/boot/grub/grub.cfg"), ("jitter-workshop-once", "/boot/grub/custom.cfg")]
    if chosen:
        subprocess.run(["/usr/bin/grub-editenv", block, "unset", "next_entry"], check=True)
        os.sync()
    place = next((file for ident, file in entries if ident == chosen and os.path.exists(file)), entries[0][1])
    with open(place) as file:
        line = next(line for line in file if line.split()[:1] == ["linux"])
    return " ".join(line.split()[2:])


def test_one_boot_has_the_parameters_and_a_power_cycle_undoes_them(lab_factory: Callable[..., Machine]) -> None:
    machine = lab_factory(disk=True)
    if machine.run(["sh", "-c", "test -x /usr/bin/grub-editenv"]).code != 0:
        pytest.skip("grub-editenv is not here (install grub-common): this guest shares the test runner's /usr")
    machine.call(settings)
    machine.run(["mkdir", FOLDER], check=True)
    machine.write(f"{FOLDER}/grub.cfg", madegrub.menu("0", ENTRIES))
    machine.run(["/usr/bin/grub-editenv", f"{FOLDER}/grubenv", "create"], check=True)
    machine.run(["sync"], check=True)

    told = chapter(machine, "tick", "apply")
    assert (told["applied"], told["refused"], told["reboot"], told["back"]) == (4, [], True, 0), told
    assert machine.list_dir("/etc/default/grub.d") == []
    assert machine.list_dir(FOLDER) == ["custom.cfg", "grub.cfg", "grubenv"]
    line = machine.call(grub)
    assert line.startswith("quiet loglevel=4 nohz_full=")
    machine.reboot(append=line)
    assert "nohz_full=" in machine.read("/proc/cmdline")

    # As if that boot hung: the power is taken away, and GRUB starts again.
    line_after = machine.call(grub)
    assert line_after == "quiet loglevel=4"
    machine.power_cut()
    machine.boot(append=line_after)
    assert "nohz_full" not in machine.read("/proc/cmdline")
    told = chapter(machine, "tick", "apply")
    assert NOT_IN_EFFECT in told["rebooted"], told
    assert (told["applied"], told["refused"]) == (1, []), told
    machine.reboot(append=machine.call(grub))

    told = chapter(machine, "tick")
    assert "in effect, in this boot alone" in told["rebooted"], told
    assert told["marks"]["setting"] is True
    said = machine.workshop("status", "--json").json()
    assert any("for this boot only" in check["reason"] for check in said["checks"])
    assert machine.workshop("restore", "--json").json()["left_alone"] == []
    assert machine.list_dir(FOLDER) == ["grub.cfg", "grubenv"]
    assert machine.call(grub) == "quiet loglevel=4"

    # The verb does the same. nosmt, because the running kernel has what the chapter asked for.
    done = machine.workshop("apply", "--next-boot", "nosmt", "--yes", "--json", check=True).json()
    assert [change["path"] for change in done["applied"]] == [
        f"{FOLDER}/custom.cfg",
        f"{FOLDER}/custom.cfg(nosmt)",
        f"{FOLDER}/grubenv(next_entry)",
    ]
    assert machine.workshop("restore", "--json").json()["needs_reboot"] is False
    assert machine.call(grub) == "quiet loglevel=4"
