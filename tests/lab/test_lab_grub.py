"""GRUB itself starts from what we write: its menu, its environment block and our entry on a disk of their own.

No kernel is started: the menu's ``linux`` is a function that says what it was told and starts the machine anew, so that
the next start shows what GRUB made of its environment block.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from jitter_workshop.host.boot.grub import default_entry
from tests import madegrub
from tests.tuned_tree import Agent, planned

pytestmark = pytest.mark.lab

MODULES = Path("/usr/lib/grub/i386-pc")
IN_CORE = (
    "biosdisk",
    "ext2",
    "normal",
    "echo",
    "reboot",
    "test",
    "loadenv",
    "configfile",
    "serial",
    "terminal",
    "true",
)
WORDS = ("once:nohz-full", "once:rcu-nocbs")
SAYS = """serial --unit=0
terminal_output serial
set timeout=0
function load_video {
	true
}
function linux {
	echo "<$@>"
	reboot
}
"""


def missing() -> str:
    if os.environ.get("JITTER_WORKSHOP_LAB") == "off":
        return "the lab machine is switched off (JITTER_WORKSHOP_LAB=off)"
    tools = [tool for tool in ("qemu-system-x86_64", "grub-mkimage", "mkfs.ext4") if shutil.which(tool) is None]
    if not (MODULES / "lnxboot.img").is_file():
        tools.append(f"GRUB's modules in {MODULES} (grub-pc-bin)")
    return f"not here: {', '.join(tools)}" if tools else ""


@pytest.fixture(scope="module")
def grub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """GRUB for a PC's firmware as a file that QEMU starts; it takes its menu from the first disk."""
    reason = missing()
    if reason and os.environ.get("JITTER_WORKSHOP_LAB") == "required":
        pytest.fail(f"the lab machine is required and not all of it is here: {reason}", pytrace=False)
    if reason:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("grub")
    core = folder / "core.img"
    command = ["grub-mkimage", "-d", str(MODULES), "-O", "i386-pc", "-p", "(hd0)/boot/grub", "-o", str(core), *IN_CORE]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    image = folder / "grub.img"
    image.write_bytes((MODULES / "lnxboot.img").read_bytes() + core.read_bytes())
    return image


def start(grub: Path, disk: Path) -> list[str]:
    """The words behind ``linux`` of the entry that GRUB boots from this disk."""
    command = [
        *("qemu-system-x86_64", "-m", "128", "-display", "none", "-monitor", "none", "-serial", "stdio", "-no-reboot"),
        *("-net", "none", "-kernel", str(grub), "-drive", f"file={disk},format=raw,if=ide"),
    ]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False)
    # The terminal breaks lines and moves its cursor.
    said = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|[\r\n]", "", done.stdout.decode("utf-8", "replace"))
    found = re.search(r"<([^<>]*)>", said)
    assert found, said[-2000:]
    return found[1].split()


@pytest.mark.parametrize(
    ("default", "saved"),
    [
        ("0", ""),
        ("${saved_entry}", "1>1"),
        ("gnulinux-advanced-1>gnulinux-6.1.0-1-advanced-1", ""),
        ("Advanced options for Debian GNU/Linux>1", ""),
        ("1>Debian, with Linux 6.1.0-1", ""),
    ],
)
def test_grub_boots_our_entry_once_and_then_its_default(grub: Path, tmp_path: Path, default: str, saved: str) -> None:
    menu = SAYS + madegrub.menu(default)
    block = madegrub.block(saved_entry=saved) if saved else madegrub.block()
    tree = madegrub.box(tmp_path / "tree", cpus=4, menu=menu, block=block)
    by_itself = list(default_entry(menu, saved).arguments)
    with Agent(tree) as agent:
        assert agent.apply(planned(tree, WORDS), WORDS)["refused"] == []
    disk = tmp_path / "disk.img"
    with disk.open("wb") as file:
        file.truncate(16 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-d", str(tree), str(disk)], check=True, capture_output=True, timeout=60)
    assert start(grub, disk) == [*by_itself, "nohz_full=2-3", "rcu_nocbs=2-3"]
    # It had forgotten the entry before it started the kernel.
    assert start(grub, disk) == by_itself
