"""Define the kinds of a GRUB menu entry that is used for one boot.

The settings are the entry, its parameters, and GRUB's choice of the entry. The path of such a setting has two parts: a
file's path, and a part of this file in parentheses. An example is ``/boot/grub/custom.cfg(nohz_full)``.
"""

from __future__ import annotations

import errno

from jitter_workshop.host.boot.bootloader import ENTRY_ID
from jitter_workshop.host.boot.grub import NotUnderstood, environment_variables, torn_by_a_cut, with_variable
from jitter_workshop.host.boot.next_boot import OwnEntry, custom_cfg_text, next_boot_entry, one_boot, own_entry
from jitter_workshop.host.root import HostRoot, TextReading
from jitter_workshop.tuning.setting_types.system import NextBoot, checked_parameters, of_names
from jitter_workshop.tuning.writer import HostWriter

NEXT = "next_entry"


class _Entry(NextBoot):
    """Handle a part of our own menu entry, which is in GRUB's file ``custom.cfg``."""

    def read(self, root: HostRoot, path: str) -> TextReading:
        try:
            own = own_entry(root, _folder(path))
        except NotUnderstood as foreign:
            return TextReading(None, str(foreign))
        return TextReading(self.part(path, own) if own is not None else "")

    def part(self, path: str, own: OwnEntry) -> str:
        """Return the value that our entry ``own`` has for the setting ``path``."""
        raise NotImplementedError

    def make_sure(self, writer: HostWriter, path: str, value: str) -> None:
        writer.remove_unfinished(file_of(path))


class GrubEntry(_Entry):
    """Handle this tool's entry in GRUB's file ``custom.cfg``. The entry is a copy of another menu entry, with added
    parameters. The value is the name of that other entry; "" means that this tool has no entry.

    ``write`` makes an entry only if there is none. ``write`` removes the entry only if it has no added parameters any
    more.
    """

    name = "grub-entry"

    def part(self, path: str, own: OwnEntry) -> str:
        return own.summary

    def write(self, writer: HostWriter, path: str, value: str) -> None:
        own = _own_or_refuse(writer, path)
        if not value:
            if own is not None and own.added:
                raise OSError(
                    errno.ENOTEMPTY, f"our boot entry still adds {' '.join(own.added)}{_chosen(writer.reader, path)}"
                )
            writer.replace_file(path, None)
            return
        offer = one_boot(writer.reader)
        if offer.entry is None:
            raise OSError(errno.EINVAL, offer.reason)
        if own is not None or offer.entry.summary != value:
            raise OSError(errno.EEXIST, "GRUB's default entry has changed since the plan, or our entry already exists")
        writer.replace_file(path, custom_cfg_text(offer.entry, (), value))

    def in_effect(self, root: HostRoot, value: str) -> bool:
        return False


class GrubOnce(_Entry):
    """Handle kernel parameters of our entry for one boot, ``/boot/grub/custom.cfg(NAME)`` or ``(NAME+NAME)``.

    The value is the parameters as text; "" means that the entry has none of them. The parameters are in effect only
    during a boot with this entry.
    """

    name = "grub-once"

    def part(self, path: str, own: OwnEntry) -> str:
        return of_names(" ".join(own.added), _names(path))

    def write(self, writer: HostWriter, path: str, value: str) -> None:
        own = _own_or_refuse(writer, path)
        if own is None:
            if not value:
                return
            raise OSError(errno.ENOENT, "our entry does not exist")
        names = _names(path)
        kept = tuple(word for word in own.added if word.partition("=")[0] not in names)
        added = (*kept, *(checked_parameters(value).split(" ") if value else ()))
        writer.replace_file(file_of(path), custom_cfg_text(own.copy, added, own.summary))


class GrubNext(NextBoot):
    """Handle GRUB's choice of the next boot, ``/boot/grub/grubenv(next_entry)``. The value is the id of the chosen
    entry; "" means no choice.

    GRUB clears this variable when it boots. So a missing value does not mean that somebody changed the setting.
    """

    name = "grub-next"
    fleeting = True

    def read(self, root: HostRoot, path: str) -> TextReading:
        block = root.raw(file_of(path), 65_536)
        if block is None:
            return TextReading(None, root.reading(file_of(path)).reason or "the file is larger than 64 KiB")
        try:
            return TextReading(environment_variables(block).get(NEXT, ""))
        except ValueError as error:
            return TextReading(None, str(error))

    def write(self, writer: HostWriter, path: str, value: str) -> None:
        file = file_of(path)
        if value not in ("", ENTRY_ID):
            raise OSError(errno.EINVAL, "only our own entry can be chosen")
        if value:
            own = _own_or_refuse(writer, path)
            if own is None or not own.added:
                # GRUB would boot its first entry instead, which may not be the default.
                raise OSError(errno.ENOENT, "our entry does not exist")
        block = writer.reader.raw(file, 65_536)
        try:
            data = with_variable(block or b"", NEXT, value)
        except ValueError as error:
            raise OSError(errno.EINVAL, str(error)) from error
        if value and torn_by_a_cut(block or b"", data):
            raise OSError(
                errno.ENOSPC, "GRUB's environment block has too little free space for a write that survives a power cut"
            )
        writer.overwrite(file, data)

    def make_sure(self, writer: HostWriter, path: str, value: str) -> None:
        writer.sync_file(file_of(path))  # a block is written in one go, and leaves no other files

    def in_effect(self, root: HostRoot, value: str) -> bool:
        return False


def file_of(path: str) -> str:
    """Return ``/boot/grub/custom.cfg`` for ``/boot/grub/custom.cfg(nohz_full)``."""
    return path.partition("(")[0]


def _folder(path: str) -> str:
    return file_of(path).rpartition("/")[0]


def _chosen(root: HostRoot, path: str) -> str:
    """Return a clause which says that GRUB will not boot our menu entry next. Return "" if GRUB will boot it."""
    try:
        chosen = next_boot_entry(root, _folder(path)) == ENTRY_ID
    except NotUnderstood:
        return ""
    return "" if chosen else ", and the next boot will not use it: 'apply --next-boot' chooses it again"


def _names(path: str) -> list[str]:
    return path.partition("(")[2].removesuffix(")").split("+")


def _own_or_refuse(writer: HostWriter, path: str) -> OwnEntry | None:
    try:
        return own_entry(writer.reader, _folder(path))
    except NotUnderstood as foreign:
        raise OSError(errno.EEXIST, str(foreign)) from foreign
