"""A made Debian box whose GRUB can boot an entry once: its menu as grub-mkconfig writes it, its environment block."""

from __future__ import annotations

from pathlib import Path

from tests import hosttrees

HEADER = """if [ -s $prefix/grubenv ]; then
  set have_grubenv=true
  load_env
fi
if [ "${next_entry}" ] ; then
   set default="${next_entry}"
   set next_entry=
   save_env next_entry
   set boot_once=true
else
   set default="DEFAULT"
fi
if [ x"${feature_menuentry_id}" = xy ]; then
  menuentry_id_option="--id"
else
  menuentry_id_option=""
fi
export menuentry_id_option
function savedefault {
  if [ -z "${boot_once}" ]; then
    saved_entry="${chosen}"
    save_env saved_entry
  fi
}
"""

CUSTOM = """if [ -f  ${config_directory}/custom.cfg ]; then
  source ${config_directory}/custom.cfg
elif [ -z "${config_directory}" -a -f  $prefix/custom.cfg ]; then
  source $prefix/custom.cfg
fi
"""

FIRMWARE = """if [ "$grub_platform" = "efi" ]; then
	menuentry 'UEFI Firmware Settings' $menuentry_id_option 'uefi-firmware' {
		fwsetup
	}
fi
"""

DISK = "254:1"
MOUNTS = f"""21 1 {DISK} / / rw,relatime - ext4 /dev/vda1 rw
22 21 0:20 / /proc rw,nosuid - proc proc rw
"""


def entry(title: str, ident: str, arguments: str, indent: str = "") -> str:
    """A menu entry as 10_linux writes it."""
    lines = (
        f"menuentry '{title}' --class debian --class os $menuentry_id_option '{ident}' {{",
        "\tsavedefault",
        "\tload_video",
        "\tif [ x$grub_platform = xxen ]; then insmod xzio; insmod lzopio; fi",
        "\tsearch --no-floppy --fs-uuid --set=root 0000-0000",
        "\techo\t'Loading Linux ...'",
        f"\tlinux\t{arguments}",
        "\tinitrd\t/boot/initrd.img",
        "}",
    )
    return "".join(f"{indent}{line}\n" for line in lines)


def menu(default: str = "0", entries: str = "", custom: str = CUSTOM) -> str:
    """A whole grub.cfg; without ``entries`` that of a Debian box with two kernels."""
    line = "root=UUID=1 ro console=ttyS0,115200 quiet"
    box = (
        entry("Debian GNU/Linux", "gnulinux-simple-1", f"/boot/vmlinuz-6.1.0-2 {line}")
        + "submenu 'Advanced options for Debian GNU/Linux' $menuentry_id_option 'gnulinux-advanced-1' {\n"
        + entry("Debian, with Linux 6.1.0-2", "gnulinux-6.1.0-2-advanced-1", f"/boot/vmlinuz-6.1.0-2 {line}", "\t")
        + entry("Debian, with Linux 6.1.0-1", "gnulinux-6.1.0-1-advanced-1", f"/boot/vmlinuz-6.1.0-1 {line}", "\t")
        + "}\n"
    )
    return HEADER.replace("DEFAULT", default) + (entries or box) + FIRMWARE + custom


def block(**variables: str) -> str:
    """An environment block as grub-editenv makes it."""
    text = "# GRUB Environment Block\n" + "".join(f"{name}={value}\n" for name, value in variables.items())
    return text.ljust(1024, "#")


def files(**more: str) -> dict[str, str]:
    """Path → text of what makes a box one that can boot an entry once; ``more`` beside or instead, by short names:
    ``menu``, ``block``, ``mounts``, ``device``."""
    return {
        "etc/os-release": 'ID=debian\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n',
        "etc/default/grub": 'GRUB_DEFAULT=0\nGRUB_CMDLINE_LINUX_DEFAULT="quiet"\nGRUB_CMDLINE_LINUX="console=ttyS0"\n',
        "etc/default/grub.d/README": "x\n",
        "usr/sbin/update-grub": "#!/bin/sh\n",
        "boot/grub/grub.cfg": more.get("menu", menu()),
        "boot/grub/grubenv": more.get("block", block()),
        "proc/self/mountinfo": more.get("mounts", MOUNTS),
        f"sys/dev/block/{DISK}/uevent": f"MAJOR=254\nMINOR=1\nDEVNAME={more.get('device', 'vda1')}\n",
        "proc/irq/default_smp_affinity": "ff\n",
        f"{hosttrees.CPU}/nohz_full": "(null)\n",
    }


def box(root: Path, cpus: int = 8, **more: str) -> Path:
    """A host booted with ``quiet``, and GRUB as ``files`` has it."""
    hosttrees.small(root, cpus)
    hosttrees.write(root, {"proc/cmdline": f"BOOT_IMAGE=/vmlinuz {more.pop('line', 'quiet')}\n", **files(**more)})
    return root


def boots(root: Path) -> str:
    """Return what GRUB does with the tree's files at a start, as 00_header says: the parameters of the entry that it
    boots. The tree then looks as after that boot."""
    menu = (root / "boot/grub/grub.cfg").read_text()
    block = root / "boot/grub/grubenv"
    chosen = next((line[11:] for line in block.read_text().split("\n") if line.startswith("next_entry=")), "")
    custom = root / "boot/grub/custom.cfg"
    text = custom.read_text() if chosen and custom.is_file() and f"'{chosen}'" in custom.read_text() else menu
    if chosen:
        block.write_text(block.read_text().replace(f"next_entry={chosen}\n", "next_entry=\n").ljust(1024, "#"))
    line = next(line for line in text.split("\n") if line.split()[:1] == ["linux"])
    parameters = " ".join(line.split()[2:])
    hot = next((word.partition("=")[2] for word in parameters.split() if word.startswith("nohz_full=")), "(null)")
    number = int((root / "proc/sys/kernel/random/boot_id").read_text()[:8], 16) + 1
    hosttrees.write(
        root,
        {
            "proc/cmdline": f"BOOT_IMAGE={line.split()[1]} {parameters}\n",
            f"{hosttrees.CPU}/nohz_full": f"{hot}\n",
            "proc/sys/kernel/random/boot_id": f"{number:08x}{hosttrees.BOOT_ID[8:]}\n",
        },
    )
    return parameters
