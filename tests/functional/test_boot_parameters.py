"""The real grub-mkconfig reads our drop-ins: in a private mount namespace, so that nothing of this host is touched."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import Wanted
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.tuning import planning
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.setting_types.kinds import kind_of
from jitter_workshop.tuning.writer import HostWriter
from tests import hosttrees, madegrub

TEMPLATE = Path("/etc/grub.d/10_linux")
NEEDED = ("update-grub", "grub-mkconfig", "grub-script-check", "unshare")

# A made tree cannot have a disk on which a folder lies. It has all else.
PROBE = """#!/bin/sh
case "$*" in
    *target=device*) echo /dev/sda1 ;;
    *target=fs_uuid*) echo 0000-0000 ;;
    *target=fs*) echo ext2 ;;
    *target=drive*) echo "(hd0,1)" ;;
esac
"""

SETTINGS = """GRUB_DEFAULT=0
GRUB_TIMEOUT=5
GRUB_DISTRIBUTOR=Debian
GRUB_CMDLINE_LINUX_DEFAULT="quiet splash"
GRUB_CMDLINE_LINUX="console=ttyS0,115200 root_opts='a b'"
"""

CLOUD = 'GRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT net.ifnames=0"\n'

RUN = """set -e
mount --bind "$1/etc/default" /etc/default
mount --bind "$1/etc/grub.d" /etc/grub.d
mount --bind "$1/boot" /boot
mount --bind "$1/probe" "$(command -v grub-probe)"
exec update-grub
"""


def missing() -> str:
    if os.geteuid() != 0:
        return "only root can make a mount namespace with other folders in it"
    gone = [tool for tool in NEEDED if shutil.which(tool) is None]
    if gone or not TEMPLATE.exists():
        return f"not here: {', '.join(gone) or TEMPLATE} (install grub2-common)"
    tried = subprocess.run(["unshare", "-m", "true"], capture_output=True, timeout=30, check=False)
    return "" if tried.returncode == 0 else "this container may not make mount namespaces"


pytestmark = pytest.mark.skipif(bool(missing()), reason=f"the real grub-mkconfig cannot be run: {missing()}")


def machine(root: Path) -> Host:
    """A Debian box with 8 CPUs, one kernel, and GRUB."""
    hosttrees.small(root, 8)
    hosttrees.write(
        root,
        {
            "etc/os-release": "ID=debian\n",
            "etc/default/grub": SETTINGS,
            "etc/default/grub.d/50-cloud.cfg": CLOUD,
            "usr/sbin/update-grub": "#!/bin/sh\n",
            "boot/vmlinuz-6.1.0-1-amd64": "MZ",
            "boot/initrd.img-6.1.0-1-amd64": "x",
            "proc/irq/default_smp_affinity": "ff\n",
            f"{hosttrees.CPU}/nohz_full": "(null)\n",
            "probe": PROBE,
        },
    )
    (root / "probe").chmod(0o755)
    (root / "boot/grub").mkdir()
    (root / "etc/grub.d").mkdir()
    shutil.copy(TEMPLATE, root / "etc/grub.d/10_linux")
    return Host(HostRoot(root), CpuSet((6, 7)))


def menu(root: Path) -> list[list[str]]:
    """The words of each kernel line that the real update-grub makes of the tree's settings."""
    command = ["unshare", "-m", "--propagation", "private", "sh", "-c", RUN, "sh", str(root)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    lines = (root / "boot/grub/grub.cfg").read_text().splitlines()
    return [line.split()[2:] for line in lines if line.split()[:1] == ["linux"]]


def test_the_menu_holds_each_parameter_once_keeps_the_others_and_comes_back(tmp_path: Path) -> None:
    host = machine(tmp_path)
    before = menu(tmp_path)
    assert before
    wanted = [
        Wanted(name)
        for name in ("isolcpus", "nohz-full", "rcu-nocbs", "irqaffinity", "skew-tick", "idle-poll", "nowatchdog")
    ]
    plan = planning.plan_changes(host, [*wanted, Wanted("max-cstate", "1")])
    assert not plan.skipped
    writer = HostWriter(tmp_path)
    for change in plan.changes:
        kind_of(change.kind).write(writer, change.path, change.after)
    after = menu(tmp_path)
    assert len(after) == len(before)
    ours = [word for change in plan.changes for word in change.after.split()]
    assert len(ours) == 9
    for was, now in zip(before, after, strict=True):
        assert [word for word in now if word not in ours] == was
        assert sorted(word for word in now if word in ours) == sorted(ours)
    for change in reversed(plan.changes):
        kind_of(change.kind).write(writer, change.path, change.before)
    assert menu(tmp_path) == before


@pytest.mark.parametrize(
    ("default", "kernel"),
    [
        ("0", "6.1.0-2"),
        ("1>2", "6.1.0-1"),
        ("saved", "6.1.0-1"),
        ("gnulinux-advanced-0000-0000>gnulinux-6.1.0-1-amd64-advanced-0000-0000", "6.1.0-1"),
    ],
)
def test_an_entry_for_one_boot_from_the_menu_that_grub_mkconfig_makes(
    tmp_path: Path, default: str, kernel: str
) -> None:
    host = machine(tmp_path)
    for name in ("00_header", "30_uefi-firmware", "41_custom"):
        shutil.copy(TEMPLATE.with_name(name), tmp_path / "etc/grub.d" / name)
    made = madegrub.files(block=madegrub.block(saved_entry="1>2"))
    for name in ("boot/grub/grub.cfg", "etc/default/grub", "usr/sbin/update-grub"):
        del made[name]
    more = {
        **made,
        "boot/vmlinuz-6.1.0-2-amd64": "MZ",
        "boot/initrd.img-6.1.0-2-amd64": "x",
        "etc/default/grub": SETTINGS.replace("GRUB_DEFAULT=0", f'GRUB_DEFAULT="{default}"'),
    }
    hosttrees.write(tmp_path, more)
    lines = menu(tmp_path)
    plan = planning.plan_changes(host, [Wanted("nohz-full", once=True), Wanted("max-cstate", "1", once=True)])
    assert not plan.skipped
    writer = HostWriter(tmp_path)
    for change in plan.changes:
        kind_of(change.kind).write(writer, change.path, change.after)
    text = (tmp_path / "boot/grub/custom.cfg").read_text()
    (ours,) = [line.split()[1:] for line in text.splitlines() if line.split()[:1] == ["linux"]]
    assert f"vmlinuz-{kernel}-amd64" in ours[0]
    assert ours[1:-3] in lines
    assert ours[-3:] == ["nohz_full=6-7", "processor.max_cstate=1", "intel_idle.max_cstate=1"]
    check = shutil.which("grub-script-check")
    assert check is not None
    subprocess.run([check, str(tmp_path / "boot/grub/custom.cfg")], check=True, timeout=30)
    for change in reversed(plan.changes):
        kind_of(change.kind).write(writer, change.path, change.before)
    assert not (tmp_path / "boot/grub/custom.cfg").exists()
