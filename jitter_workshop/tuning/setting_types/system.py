"""Define kinds for the whole system: switches that affect each other, systemd units, boot parameters."""

from __future__ import annotations

import contextlib
import errno
from typing import TYPE_CHECKING

from jitter_workshop.host.boot.bootloader import BLS_ENTRIES, GRUB_SETTINGS
from jitter_workshop.host.boot.cmdline import parse_command_line, read_command_line, split_words
from jitter_workshop.host.root import HostRoot, TextReading, printable
from jitter_workshop.host.services import active_units, systemd_is_process_1
from jitter_workshop.host.shellfile import parse_assignments
from jitter_workshop.model.text import REASON
from jitter_workshop.tuning.setting_types.kinds import Choice, Kind

if TYPE_CHECKING:
    from jitter_workshop.tuning.writer import HostWriter

_KERNEL = "/proc/sys/kernel"
_PARAMETER = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.,=:-")
_UNIT = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:@-")
_APPEND = 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX '
_GRUBENV = ("/boot/grub2/grubenv", "/boot/grub/grubenv")
_MOST_ENTRIES = 64
"""The largest number of boot entries that are read."""


class Preempt(Choice):
    """Handle the kernel's preemption mode. Its file shows ``none voluntary (full)``, or one word if the kernel offers
    no choice."""

    name = "preempt"
    marks = "()"

    def read(self, root: HostRoot, path: str) -> TextReading:
        reading, chosen = root.reading(path), super().read(root, path)
        return reading if chosen.text is None and len((reading.text or "").split()) == 1 else chosen


class WatchdogSwitches(Kind):
    """Handle the switches of both lockup detectors as one setting, ``soft=1 nmi=0``.

    ``write`` writes all three files of the setting, and reads none of them in between. On kernels before 6.13, a read
    of such a file while all switches are off has a side effect. The kernel then forgets which detectors it has to start
    again (``proc_watchdog_common``).
    """

    name = "watchdog"

    def read(self, root: HostRoot, path: str) -> TextReading:
        switch = root.reading(path)
        if switch.text is None:
            return switch
        on = switch.text != "0"
        soft, nmi = (on and root.integer(f"{_KERNEL}/{name}") == 1 for name in ("soft_watchdog", "nmi_watchdog"))
        return TextReading(f"soft={int(soft)} nmi={int(nmi)}")

    def write(self, writer: HostWriter, path: str, value: str) -> None:
        soft, nmi = "soft=1" in value.split(), "nmi=1" in value.split()
        for name, on in (("soft_watchdog", soft), ("nmi_watchdog", nmi)):
            # A kernel without this detector refuses even a write that keeps it off.
            with contextlib.nullcontext() if on else contextlib.suppress(OSError):
                writer.write(f"{_KERNEL}/{name}", str(int(on)))
        writer.write(path, str(int(soft or nmi)))


class DirtyLimit(Kind):
    """Handle a limit on changed pages of memory, as ``20%`` or a number of bytes.

    The kernel has two files for each limit, such as ``vm.dirty_ratio`` and ``vm.dirty_bytes``. A write to one file sets
    the other to 0. ``path`` is the file of the ratio. A limit of 0 bytes cannot be written.
    """

    name = "dirty-limit"

    def read(self, root: HostRoot, path: str) -> TextReading:
        size = root.integer(_bytes_of(path))
        if size is not None and size > 0:
            return TextReading(str(size))
        share = root.reading(path)
        return share if share.text is None else TextReading(f"{share.text}%")

    def write(self, writer: HostWriter, path: str, value: str) -> None:
        if value.endswith("%"):
            writer.write(path, value[:-1])
        else:
            writer.write(_bytes_of(path), value)


class Unit(Kind):
    """Handle a systemd unit, ``systemd(NAME.service)``. The value is ``active`` or ``inactive``.

    ``read`` looks at the symbolic links that systemd keeps for active units. ``write`` runs systemctl start or stop. A
    write does not change whether the unit starts at boot.
    """

    name = "unit"
    never_gone = True

    def read(self, root: HostRoot, path: str) -> TextReading:
        if not systemd_is_process_1(root, root.text("/proc/1/comm")):
            return TextReading(None, "this host does not use systemd")
        return TextReading("active" if unit_name(path) in active_units(root) else "inactive")

    def write(self, writer: HostWriter, path: str, value: str) -> None:
        verb = {"active": "start", "inactive": "stop"}.get(value)
        if verb is None:
            raise OSError(errno.EINVAL, "the value for a unit must be active or inactive")
        writer.run("/usr/bin/systemctl", ("--no-ask-password", verb, "--", unit_name(path)))


class Folder(Kind):
    """Handle a folder of settings files. The value is ``present`` or ``absent``. Only an empty folder can be made
    absent."""

    name = "folder"
    survives_boot = True
    never_gone = True

    def read(self, root: HostRoot, path: str) -> TextReading:
        return TextReading("present" if root.is_dir(path) else "absent")

    def write(self, writer: HostWriter, path: str, value: str) -> None:
        if value == "present":
            with contextlib.suppress(FileExistsError):
                writer.make_folder(path)
        else:
            with contextlib.suppress(FileNotFoundError):
                writer.remove_folder(path)
        self.make_sure(writer, path, value)

    def make_sure(self, writer: HostWriter, path: str, value: str) -> None:
        writer.sync_folder(path.rpartition("/")[0] or "/")


class NextBoot(Kind):
    """Handle kernel parameters that the boot loader gives the kernel. Subclasses handle the different boot loaders. The
    value is the parameters as text, "" for none."""

    survives_boot = True
    effect_after_boot = True
    never_gone = True

    def in_effect(self, root: HostRoot, value: str) -> bool:
        """Return True if the running kernel was started with all of these parameters."""
        return bool(value) and set(parse_command_line(value)) <= set(read_command_line(root).parameters)


class GrubDropIn(NextBoot):
    """Handle kernel parameters in our own file under /etc/default/grub.d, on Debian and distributions made from it.

    The value is the parameters as text; "" if there is no such file. GRUB reads this folder after /etc/default/grub.
    Our file adds its parameters at the end of GRUB_CMDLINE_LINUX, so the host keeps all its parameters.
    """

    name = "grub"

    def read(self, root: HostRoot, path: str) -> TextReading:
        reading = root.reading(path, 65_536)
        if reading.text is None:
            return TextReading("") if reading.reason == "no such file" else reading
        return TextReading(parse_drop_in(reading.text))

    def write(self, writer: HostWriter, path: str, value: str) -> None:
        writer.replace_file(path, drop_in(value) if value else None)

    def make_sure(self, writer: HostWriter, path: str, value: str) -> None:
        with contextlib.suppress(FileNotFoundError):  # the folder is gone, with everything in it
            writer.remove_unfinished(path)


class Grubby(NextBoot):
    """Handle kernel parameters in all boot entries, by grubby(8): ``grubby(NAME)``, or ``grubby(NAME+NAME)``.

    The parameters in one path are set together. The value is the parameters as text, "" if no entry has them. Entries
    can differ, for example after a power cut. If the entries differ, ``read`` returns the values of all entries, with a
    reason. Newer versions of grubby make entries of new kernels from GRUB's settings. So ``read`` also reads the
    parameters in these settings.
    """

    name = "grubby"

    def read(self, root: HostRoot, path: str) -> TextReading:
        names = parameter_names(path)
        files = [n for n in root.list_dir(BLS_ENTRIES) if n.endswith(".conf")]
        if not files:
            return TextReading(None, "the boot entries are not shown (only root can list them on many hosts)")
        found = {_entry_parameters(root, f"{BLS_ENTRIES}/{file}", names) for file in files[:_MOST_ENTRIES]}
        if None in found:
            return TextReading(None, "a boot entry cannot be read")
        told = {text for text in found if text is not None}
        settings = parse_assignments(root.text(GRUB_SETTINGS) or "").get("GRUB_CMDLINE_LINUX", "")
        if (there := of_names(settings, names)) and there not in told:
            return TextReading(
                _differing({*told, there}), f"the boot entries and {GRUB_SETTINGS} give this parameter different values"
            )
        if len(told) > 1:
            return TextReading(_differing(told), "the boot entries give this parameter different values")
        return TextReading(told.pop())

    def write(self, writer: HostWriter, path: str, value: str) -> None:
        names = parameter_names(path)
        arguments = ["--update-kernel=ALL", f"--remove-args={' '.join(names)}"]
        if value:
            arguments.append(f"--args={checked_parameters(value)}")
        try:
            writer.run("/usr/sbin/grubby", tuple(arguments))
        except FileNotFoundError:
            writer.run("/usr/bin/grubby", tuple(arguments))
        _sync_written(writer)

    def between(self, found: str, before: str, after: str) -> bool:
        return self.same(found, _differing({before, after}))

    def make_sure(self, writer: HostWriter, path: str, value: str) -> None:
        _sync_written(writer)


def _sync_written(writer: HostWriter) -> None:
    from jitter_workshop.tuning.writer import sync_written  # only a write needs it, and status reads

    sync_written(writer)


def drop_in(parameters: str) -> str:
    """Return the text of a GRUB settings file that adds ``parameters``. Raise OSError (EINVAL) if ``parameters`` is not
    a plain list of kernel parameters."""
    return f"# Written by jitter-workshop, whose restore removes it and runs update-grub.\n{setting(parameters)}\n"


def setting(parameters: str) -> str:
    """Return the line of a GRUB settings file that adds ``parameters``. Raise OSError (EINVAL) as :func:`drop_in`."""
    return f'{_APPEND}{checked_parameters(parameters)}"'


def parse_drop_in(text: str) -> str:
    """Return the parameters in the text of a file that ``drop_in`` wrote. If the text has another form, return
    "(changed by hand)" followed by the text.
    """
    lines = [line.strip() for line in text.split("\n")]
    told = [line for line in lines if line and not line.startswith("#")]
    if len(told) == 1 and told[0].startswith(_APPEND) and told[0].endswith('"'):
        inner = told[0][len(_APPEND) : -1].strip()
        if inner and _PARAMETER.issuperset(inner.replace(" ", "")):
            return " ".join(inner.split())
    return f"(changed by hand) {printable(' '.join(told), REASON)}".rstrip()


def checked_parameters(text: str) -> str:
    """Return ``text`` if its parameters hold only characters without meaning to a shell or to GRUB. Raise OSError
    (EINVAL) if they hold others."""
    words = text.split(" ")
    if not all(word and _PARAMETER.issuperset(word) and word[0] not in "-=" for word in words) or len(text) > 1_024:
        raise OSError(errno.EINVAL, "these are not plain kernel parameters")
    return text


def unit_name(path: str) -> str:
    """Return ``tuned.service`` for ``systemd(tuned.service)``. Raise OSError (EINVAL) if the path has another form."""
    name = path.removeprefix("systemd(").removesuffix(")")
    if path != f"systemd({name})" or not name or not _UNIT.issuperset(name) or name.startswith("-"):
        raise OSError(errno.EINVAL, "this is not the name of a unit")
    return name


def parameter_names(path: str) -> list[str]:
    """Return ``a`` and ``b`` for ``grubby(a+b)``. Raise OSError (EINVAL) if the path has another form."""
    inner = path.removeprefix("grubby(").removesuffix(")")
    names = inner.split("+")
    if path != f"grubby({inner})" or not all(n and _PARAMETER.issuperset(n) and n[0] not in "-=" for n in names):
        raise OSError(errno.EINVAL, "these are not names of kernel parameters")
    return names


def of_names(line: str, names: list[str]) -> str:
    """Return those words of the command line ``line`` that are parameters with one of ``names``, as one text."""
    return " ".join(word for word in split_words(line) if word.partition("=")[0] in names)


def _differing(texts: set[str]) -> str:
    return f"(differing) {' | '.join(sorted(text or 'nothing' for text in texts))}"


def _entry_parameters(root: HostRoot, path: str, names: list[str]) -> str | None:
    """Return the parameters of a boot entry that have one of ``names``; None if the entry cannot be read."""
    text = root.text(path, 65_536)
    if text is None:
        return None
    options = " ".join(line[7:].strip() for line in text.split("\n") if line[:8].rstrip() == "options")
    words = split_words(options)
    if "$kernelopts" in words:
        block = next((found for place in _GRUBENV if (found := root.text(place, 65_536)) is not None), "")
        kept = (line.removeprefix("kernelopts=") for line in block.split("\n") if line.startswith("kernelopts="))
        words = [*split_words(next(kept, "")), *words]
    return of_names(" ".join(words), names)


def _bytes_of(path: str) -> str:
    return path.removesuffix("_ratio") + "_bytes"
