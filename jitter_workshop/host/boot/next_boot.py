"""Check if GRUB can boot a menu entry for one boot, and read this tool's own menu entry.

GRUB boots the entry in the variable ``next_entry`` once, and clears this variable before the kernel starts. So if the
boot of this entry fails, the next boot uses the default entry again. GRUB can clear the variable only on a plain disk
and a file system without checksums. Source: GNU GRUB manual, "Environment block".

This tool's entry is a copy of the default entry with additional parameters. It is in the file ``custom.cfg``, which the
menu reads (grub-mkconfig's 41_custom). This module only reads files.
"""

from __future__ import annotations

from jitter_workshop.host.boot import grub
from jitter_workshop.host.boot.bootloader import CUSTOM, ENTRY_ID, ENVIRONMENT, FOLDERS
from jitter_workshop.host.boot.grub import MenuEntry, NotUnderstood
from jitter_workshop.host.root import HostRoot, printable
from jitter_workshop.host.shellfile import parse_assignments
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.text import ID, LABEL, WORD

_HEAD = "# Written by jitter-workshop, whose restore removes it: the default entry once more, with more parameters."
_COPY = "# Copy of "
_ADDED = "# Added: "
_MOUNTS = "/proc/self/mountinfo"
_WRITABLE = ("ext2", "ext3", "ext4", "xfs")
_DISKS = ("sd", "vd", "hd", "xvd", "nvme", "mmcblk")


@dataclass(frozen=True, slots=True)
class OwnEntry:
    """Hold this tool's menu entry in ``custom.cfg``.

    - ``copy``: the default entry at the time of the copy, without added parameters.
    - ``summary``: one line about the entry.
    - ``added``: the parameters that this tool added.
    """

    copy: MenuEntry
    summary: str
    added: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OneBoot:
    """Tell whether GRUB can boot an entry once.

    - ``folder``: GRUB's folder, "" if it was not found.
    - ``entry``: the menu's default entry.
    - ``next_entry``: the entry that is already chosen for the next boot, or "".
    - ``reason``: the reason why GRUB cannot boot an entry once; "" if GRUB can do this.
    - ``shut``: True if only root can read GRUB's menu.
    """

    folder: str = ""
    entry: MenuEntry | None = None
    next_entry: str = ""
    reason: str = ""
    shut: bool = False


def own_entry(root: HostRoot, folder: str) -> OwnEntry | None:
    """Return this tool's menu entry in the file ``custom.cfg`` of a folder; None if there is no such file.

    Raise NotUnderstood if the file holds anything but this entry, or cannot be read.
    """
    path = f"{folder}/{CUSTOM}"
    reading = root.reading(path, 65_536)
    if reading.text is None:
        if reading.reason == "no such file":
            return None
        raise NotUnderstood(f"{path} cannot be read: {reading.reason}")
    found = _parse_own(reading.text)
    if found is None:
        raise NotUnderstood(f"{path} was not written by this tool, or was changed by hand")
    return found


def custom_cfg_text(copy: MenuEntry, added: tuple[str, ...], summary: str) -> str:
    """Return the text of a ``custom.cfg`` with one menu entry. ``copy``: the default entry. ``added``: additional
    kernel parameters, which follow the parameters of the default entry. ``summary``: one line about the entry."""
    more = "".join(f" {word}" for word in added)
    what = f": {' '.join(added)}" if added else ""
    return (
        f"{_HEAD}\n{_COPY}{summary}\n{_ADDED}{' '.join(added)}\n"
        f"menuentry 'jitter-workshop, for one boot{what}' $menuentry_id_option '{ENTRY_ID}' {{"
        f"{copy.body[: copy.at]}{more}{copy.body[copy.at :]}}}\n"
    )


def one_boot(root: HostRoot) -> OneBoot:
    """Check if GRUB on this host can boot an entry once. The check reads GRUB's menu, its environment block, and the
    host's mounts."""
    folder = next((f for f in FOLDERS if root.head(f"{f}/grub.cfg", 1) is not None), "")
    if not folder:
        shut = next((f for f in FOLDERS if root.reading(f"{f}/grub.cfg").reason == "not permitted"), "")
        if shut:
            return OneBoot(reason=f"only root can read {shut}/grub.cfg", shut=True)
        return OneBoot(reason="GRUB's menu (grub.cfg) was not found")
    try:
        return _offered(root, folder)
    except NotUnderstood as refusal:
        return OneBoot(folder, reason=str(refusal))


def next_boot_entry(root: HostRoot, folder: str) -> str:
    """Return the entry that GRUB will boot once, at the next start; "" if GRUB will boot the default entry. Raise
    NotUnderstood if GRUB's environment block cannot be read."""
    return _environment(root, folder).get("next_entry", "")


def _offered(root: HostRoot, folder: str) -> OneBoot:
    menu = root.reading(f"{folder}/grub.cfg")
    if menu.text is None:
        raise NotUnderstood(f"{folder}/grub.cfg cannot be read: {menu.reason}")
    if "\ufffd" in menu.text:
        raise NotUnderstood(f"{folder}/grub.cfg is not UTF-8")
    commands = grub.parse_menu(menu.text)
    if not grub.takes_next_entry(commands):
        raise NotUnderstood("GRUB's menu does not look for an entry to boot once (next_entry)")
    if not grub.reads_custom(commands):
        raise NotUnderstood(f"GRUB's menu does not read {folder}/{CUSTOM}")
    own_entry(root, folder)
    environment = _environment(root, folder)
    chosen = environment.get("next_entry", "")
    if chosen not in ("", ENTRY_ID):
        raise NotUnderstood(f"'{printable(chosen, LABEL)}' is already chosen for the next boot")
    if "env_block" in environment or environment.get("prev_saved_entry"):
        raise NotUnderstood("GRUB's environment block is used in a way that this tool does not know")
    block = root.raw(f"{folder}/{ENVIRONMENT}", 65_536) or b""
    try:
        torn = not chosen and grub.torn_by_a_cut(block, grub.with_variable(block, "next_entry", ENTRY_ID))
    except ValueError as error:
        raise NotUnderstood(str(error)) from error
    if torn:
        raise NotUnderstood("GRUB's environment block is too full for a write that survives a power cut")
    entry = grub.default_entry(menu.text, environment.get("saved_entry", ""))
    _can_be_forgotten(root, folder)
    return OneBoot(folder, entry, chosen)


def _environment(root: HostRoot, folder: str) -> dict[str, str]:
    path = f"{folder}/{ENVIRONMENT}"
    block = root.raw(path, 65_536)
    if block is None:
        raise NotUnderstood(f"{path}: {root.reading(path).reason or 'it is too large'}")
    try:
        return grub.environment_variables(block)
    except ValueError as error:
        raise NotUnderstood(f"{path}: {error}") from error


def _can_be_forgotten(root: HostRoot, folder: str) -> None:
    """Raise NotUnderstood if GRUB cannot write its environment block in this folder. GRUB could then not clear the
    variable ``next_entry``, and would boot the chosen entry at every boot."""
    mount = _mount_of(root, folder)
    if mount is None:
        raise NotUnderstood(f"the disk of {folder} is not known")
    number, options, kind = mount
    if "ro" in options.split(","):
        raise NotUnderstood(f"{folder} is mounted read-only")
    if "data=journal" in options.split(","):
        # After a power cut, replaying the journal would overwrite GRUB's own write to the block.
        raise NotUnderstood(
            f"GRUB cannot write to {folder}, because the file system journals data. An entry for one boot would boot "
            "each time"
        )
    if kind not in _WRITABLE:
        raise NotUnderstood(
            f"GRUB cannot write to {folder} on a file system of the kind {printable(kind, WORD)}. An entry for one "
            "boot would boot each time"
        )
    name = parse_assignments(root.text(f"/sys/dev/block/{number}/uevent") or "").get("DEVNAME", "")
    if not name.startswith(_DISKS):
        raise NotUnderstood(f"GRUB can write only to a plain disk, not to {printable(name, ID) or number}")


def _mount_of(root: HostRoot, folder: str) -> tuple[str, str, str] | None:
    """Return the device number, the options and the file system of the mount that contains a folder (man 5 proc).
    Return None if this mount is not known."""
    best = found = None
    for line in (root.text(_MOUNTS) or "").split("\n"):
        fields, dash, rest = line.partition(" - ")
        words, about = fields.split(" "), rest.split(" ")
        if not dash or len(words) < 6 or len(about) < 3:
            continue
        point = words[4].rstrip("/")
        # Of two mounts at one place, the later one hides the earlier one.
        if f"{folder}/".startswith(f"{point}/") and (best is None or len(point) >= best):
            best, found = len(point), (words[2], f"{words[5]},{about[2]}", about[0])
    return found


def _parse_own(text: str) -> OwnEntry | None:
    """Return this tool's menu entry from the text of ``custom.cfg``. Return None if the text is not exactly as
    ``custom_cfg_text`` writes it."""
    lines = text.split("\n", 3)
    if len(lines) < 4 or lines[0] != _HEAD or not lines[1].startswith(_COPY):
        return None
    added = tuple(lines[2].removeprefix(_ADDED.rstrip()).split())
    try:
        commands = grub.parse_menu(lines[3])
        if len(commands) != 1 or commands[0].words[0] != "menuentry":
            return None
        entry = grub.entry_of(lines[3], commands[0])
    except NotUnderstood:
        return None
    more = "".join(f" {word}" for word in added)
    if not entry.body[: entry.at].endswith(more):
        return None
    kept = entry.body[: entry.at - len(more)] + entry.body[entry.at :]
    copy = MenuEntry(entry.title, kept, entry.at - len(more), entry.arguments[: len(entry.arguments) - len(added)])
    summary = lines[1].removeprefix(_COPY)
    known = custom_cfg_text(copy, added, summary).strip() == text.strip()
    return OwnEntry(copy, summary, added) if known and summary.endswith(" ".join(copy.arguments)) else None
