"""Judge a boot parameter, set it for the next boot by the host's own boot loader, and remove it again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from jitter_workshop.host.boot.bootloader import (
    CUSTOM,
    ENTRY_ID,
    ENVIRONMENT,
    FOLDERS,
    GRUB_DROPINS,
    GRUB_SETTINGS,
    BootLoader,
)
from jitter_workshop.host.boot.cmdline import CommandLine, parse_command_line
from jitter_workshop.host.root import printable
from jitter_workshop.host.shellfile import parse_assignments
from jitter_workshop.model.change import When
from jitter_workshop.model.status import Assessment, State
from jitter_workshop.model.text import NAME
from jitter_workshop.tuning.base import Tunable, Unavailable, Write, only_on_x86
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.setting_types.kinds import kind_of

LATER = "takes effect at the next boot"
OWN_FILE = "zz-jitter-workshop-"
"""Prefix of our settings files for GRUB. Files with this prefix sort after the host's own files, so GRUB reads them
last."""

_VARIABLES = ("GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT")
_NEXT = f"{ENVIRONMENT}(next_entry)"
_OTHER_MENU = "this tool can add an entry only to a menu that GRUB generates"
_WHY_ENTRY = "This entry is a copy of GRUB's default entry plus the parameters. The default entry does not change."
WHY_NEXT = (
    "GRUB boots this entry only once. The next boot after it uses the default entry again. If the boot of this entry "
    "hangs, switch the machine off and on."
)


class BootParameter(Tunable):
    """Handle one parameter of the kernel's command line, or several that are set together.

    - ``names``: the names of the parameters; :meth:`parameters` returns their values for this host.
    - ``word``: the whole parameter with its value, if the same value is good on every host.
    - ``effect``, ``no_effect``: the reasons to show if the running kernel has ``word``, and if it does not.
    - ``contested``: True if experts do not agree on the parameter. A host without it is not reported as bad, and a plan
      contains it only if the user names it.
    - ``x86_only``: True if kernels for other processors do not know the parameter.
    """

    when: ClassVar[When] = "boot"
    document: ClassVar[str] = "Documentation/admin-guide/kernel-parameters.txt"
    paths = ("/proc/cmdline",)
    names: ClassVar[tuple[str, ...]]
    word: ClassVar[str] = ""
    effect: ClassVar[str]
    no_effect: ClassVar[str]
    contested: ClassVar[bool] = False
    x86_only: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.word:
            cls.names = (cls.word.partition("=")[0],)
        of_these = f"({'+'.join(cls.names)})"
        cls.owns = (
            GRUB_DROPINS,
            f"{GRUB_DROPINS}/{OWN_FILE}{cls.id}.cfg",
            f"grubby{of_these}",
            *(f"{folder}/{CUSTOM}{of_these}" for folder in FOLDERS),
            *(f"{folder}/{name}" for folder in FOLDERS for name in (CUSTOM, _NEXT)),
        )

    def parameters(self, host: Host, value: str | None) -> str:
        """Return the wanted words of the command line, such as ``isolcpus=managed_irq,domain,2-3``.

        Raise Unavailable if the parameter makes no sense on this host. Raise UsageError for an invalid value.
        """
        return self.word

    def in_effect(self, host: Host) -> tuple[bool, str]:
        """Return a pair. The first item is True if the running kernel needs no change, else False. The second item is
        the reason to show.
        """
        good = self.has_word(host.command_line)
        return good, self.effect if good else self.no_effect

    def has_word(self, line: CommandLine) -> bool:
        """Return True if a kernel that was started with this line has ``word`` in effect."""
        name, equals, value = self.word.partition("=")
        return line.value(name) == value if equals else line.has(name)

    # Derived from these three -------------------------------------------------------------------------------------

    def judge(self, host: Host) -> Assessment:
        line = host.command_line
        if self.x86_only:
            only_on_x86(host)
        if line.text is None:
            raise Unavailable(line.reason)
        given = self.given(line)
        good, said = self.in_effect(host)
        staged = self._staged(host)
        waiting = bool(staged) and staged != given
        once = "" if staged else self.once(host)
        state: State = "info" if self.contested else "improve"
        if once and not good and host.own_entry[2]:
            waits = f"'{printable(once, NAME)}' {LATER} only; {said}"
            return self.answer(state, given, waits, wanted=once, fix="reboot")
        if self.this_boot_only(host):
            said += "; for this boot only"
        elif once:
            said += f"; its entry for one boot is {'' if host.own_entry[2] else 'not '}chosen for the next boot"
        if good and not waiting:
            return self.answer("ok", given or "not given", said)
        if waiting:
            reason = f"'{printable(staged, NAME)}' {LATER}; {said}"
            return self.answer(state, given, reason, wanted=staged, fix="reboot")
        try:
            wanted = self.parameters(host, None)
        except Unavailable as refusal:
            if self.contested and refusal.info:
                return self.answer("info", given, said)
            raise
        if self.contested:
            return self.answer("info", given, said)
        loader = host.boot_loader
        how = "" if loader.means in ("grub-dropin", "grubby") else how_to_write_by_hand(loader, wanted)
        if loader.in_container:
            # A container's owner does not start the kernel.
            return self.answer("info", given, said, wanted=wanted, fix=how, only_host=True)
        return self.answer("improve", given, said, wanted=wanted, fix=how)

    def writes(self, host: Host, value: str | None) -> Sequence[Write]:
        wanted = self._known(host, value)
        if self._has(host, value, wanted) and not self._staged(host) and not self.once(host):
            return ()
        loader = host.boot_loader
        if loader.means == "grub-dropin":
            return self._drop_in(host, wanted)
        if loader.means == "grubby":
            path = f"grubby({'+'.join(self.names)})"
            before = kind_of("grubby").read(host.root, path)
            if before.text is None and before.reason.startswith("the boot entries are not shown"):
                # Only root may list them: a plan without rights shows the running kernel's line instead.
                return (Write(path, self.given(host.command_line) or "", wanted, "grubby"),)
            if before.text is None or before.reason:
                raise Unavailable(before.reason)
            return (Write(path, before.text, wanted, "grubby"),)
        raise Unavailable(how_to_write_by_hand(loader, wanted), info=True)

    def writes_once(self, host: Host, value: str | None) -> Sequence[Write]:
        """Return the writes that make our own entry in GRUB's menu, and make GRUB boot this entry next time only."""
        wanted = self._known(host, value)
        if self._has(host, value, wanted) or self._staged(host) == wanted:
            return ()
        offer = host.one_boot
        why_not = by_hand_once(host.boot_loader, wanted) or offer.reason
        if why_not or offer.entry is None:
            raise Unavailable(f"this parameter cannot be set for one boot alone: {why_not}", info=True)
        entry, added = f"{offer.folder}/{CUSTOM}", f"{offer.folder}/{CUSTOM}({'+'.join(self.names)})"
        there = select_parameters(parse_command_line(" ".join(offer.entry.arguments)), self.names)
        if there is not None:
            raise Unavailable(
                f"GRUB's default entry has '{printable(there, NAME)}' already: change the parameter in that entry"
            )
        stands = kind_of("grub-entry").read(host.root, entry).text or ""
        if stands not in ("", offer.entry.summary):
            raise Unavailable(
                "GRUB's default entry has changed since this tool made its own entry: 'restore' removes this tool's "
                "entry"
            )
        now = kind_of("grub-once").read(host.root, added).text or ""
        return [
            Write(entry, stands, offer.entry.summary, "grub-entry", why=_WHY_ENTRY),
            Write(added, now, wanted, "grub-once"),
            Write(f"{offer.folder}/{_NEXT}", offer.next_entry, ENTRY_ID, "grub-next", why=WHY_NEXT),
        ]

    def once(self, host: Host) -> str:
        """Return these parameters as text, as this tool's GRUB entry for one boot sets them. Return "" if the entry
        sets none of them.
        """
        return " ".join(word for word in host.own_entry[1] if word.partition("=")[0] in self.names)

    def this_boot_only(self, host: Host) -> bool:
        """Return True if the running kernel has these parameters only from our entry for one boot."""
        once = self.once(host)
        return bool(once) and once == self.given(host.command_line) and not self._staged(host)

    def _known(self, host: Host, value: str | None) -> str:
        """Return the wanted words of the command line, as ``parameters`` returns them.

        Raise the errors of ``parameters``. Raise Unavailable if the parameters exist only on x86 and the processor is
        not x86.
        """
        if self.x86_only:
            only_on_x86(host)
        return self.parameters(host, value)

    def _has(self, host: Host, value: str | None, wanted: str) -> bool:
        """Return True if the running kernel got the parameters ``wanted``, or needs no change."""
        good = value is None and not self.contested and self.in_effect(host)[0]
        return good or self.given(host.command_line) == wanted

    def given(self, line: CommandLine) -> str | None:
        """Return the part of the running kernel's command line that sets these parameters, as text. Return None if it
        sets none of them."""
        return select_parameters(line.parameters, self.names)

    def _drop_in(self, host: Host, wanted: str) -> list[Write]:
        path = f"{GRUB_DROPINS}/{OWN_FILE}{self.id}.cfg"
        before = kind_of("grub").read(host.root, path)
        if before.text is None:
            raise Unavailable(f"{path} cannot be read: {before.reason}")
        elsewhere = other_grub_settings(host, self.names)
        if elsewhere and not before.text:
            file, there = elsewhere
            raise Unavailable(f"{file} has '{printable(there, NAME)}' already: change the parameter there")
        folder: list[Write] = []
        if not host.root.is_dir(GRUB_DROPINS):
            folder.append(
                Write(
                    GRUB_DROPINS,
                    "absent",
                    "present",
                    "folder",
                    why="GRUB reads additions to its settings from this folder.",
                )
            )
        return [*folder, Write(path, before.text, wanted, "grub", then="update-grub")]

    def _staged(self, host: Host) -> str:
        """Return the parameters that are set for the next boot; "" if none are set. They are read from this tool's
        settings file for GRUB, or from the boot entries that grubby manages.
        """
        if host.boot_loader.means == "grub-dropin":
            return kind_of("grub").read(host.root, f"{GRUB_DROPINS}/{OWN_FILE}{self.id}.cfg").text or ""
        if host.boot_loader.means == "grubby":
            staged = kind_of("grubby").read(host.root, f"grubby({'+'.join(self.names)})")
            return staged.text or "" if not staged.reason else ""
        return ""

    # For subclasses -----------------------------------------------------------------------------------------------

    def hot_list(self, host: Host) -> str:
        """Return the hot CPUs as a list such as ``2-3``. Raise Unavailable if no CPU is hot, or no housekeeping CPU
        would be left."""
        self.housekeeping_list(host)
        return str(host.hot)

    def clear_list(self, host: Host) -> str:
        """Return the hot CPUs and their siblings as a list such as ``2-3,6-7``. Raise Unavailable as
        :meth:`hot_list`."""
        self.housekeeping_list(host)
        return str(host.kept_clear)

    def housekeeping_list(self, host: Host) -> str:
        """Return the housekeeping CPUs as a list such as ``0-1``. Raise Unavailable if no CPU is hot, or no
        housekeeping CPU would be left."""
        if not len(host.hot):
            raise Unavailable("no CPU is hot")
        if not len(host.housekeeping):
            raise Unavailable("every CPU is hot: no housekeeping CPU would be left")
        return str(host.housekeeping)


def select_parameters(parameters: Sequence[tuple[str, str | None]], names: Sequence[str]) -> str | None:
    """Return those of ``parameters`` that have one of ``names``, as text; None if there are none. The characters ``-``
    and ``_`` in names count as the same, as in the kernel."""
    wanted = {name.replace("-", "_") for name in names}
    found = [(n, v) for n, v in parameters if n.replace("-", "_") in wanted]
    return " ".join(n if v is None else f"{n}={v}" for n, v in found) or None


def other_grub_settings(host: Host, names: Sequence[str]) -> tuple[str, str] | None:
    """Return the path of a GRUB settings file that sets one of these parameters.

    The result also has the text of this setting. Files of this tool are ignored. If several files set a parameter,
    return the first of these files. If no file sets one, return None.
    """
    drop_ins = [n for n in host.root.list_dir(GRUB_DROPINS) if n.endswith(".cfg") and not n.startswith(OWN_FILE)]
    for path in (GRUB_SETTINGS, *(f"{GRUB_DROPINS}/{name}" for name in drop_ins)):
        values = parse_assignments(host.root.text(path) or "")
        for variable in _VARIABLES:
            there = select_parameters(parse_command_line(values.get(variable, "")), names)
            if there is not None:
                return path, there
    return None


def by_hand_once(loader: BootLoader, parameters: str) -> str:
    """Return the steps by which a user can boot once with ``parameters``. They are needed if this tool cannot prepare
    a single boot with this boot loader.

    Return "" for GRUB with its own menu file, which this tool can set up. Sources: grubby(8), bootctl(1).
    """
    if loader.means == "grubby":
        return (
            f'{_OTHER_MENU}; by hand, as root: k=$(grubby --default-kernel); grubby --add-kernel="$k" --copy-default '
            f"--initrd=\"/boot/initramfs-${{k#*vmlinuz-}}.img\" --title={ENTRY_ID} --args='{parameters}'; "
            f"grub2-reboot {ENTRY_ID}"
        )
    if loader.name == "systemd-boot":
        return (
            f"{_OTHER_MENU}; by hand, as root: find the default entry with 'bootctl list', copy it to {ENTRY_ID}.conf "
            f"in the same folder, add '{parameters}' to the options of the copy, then run: bootctl set-oneshot "
            f"{ENTRY_ID}.conf"
        )
    return "" if loader.name == "GRUB" else how_to_write_by_hand(loader, parameters)


def how_to_write_by_hand(loader: BootLoader, parameters: str) -> str:
    """Return a sentence that tells where the user can write ``parameters`` by hand. It is for boot loaders that this
    tool cannot change."""
    if loader.means == "none":
        return f"ask the administrator who starts this machine to add '{parameters}'; {loader.reason}"
    return f"add '{parameters}' to the kernel's command line yourself; {loader.reason}"
