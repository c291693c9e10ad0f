"""Define how a setting is read, compared and written: one Kind for each format of the kernel's files.

A Change names its kind. Values are compared by meaning, not as text: ``3`` and ``00000003`` are the same mask, ``0-1``
and ``0,1`` the same list. To restore a Change means to write its ``before``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from typing import TYPE_CHECKING

from jitter_workshop.host.root import HostRoot, TextReading, parse_integer
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.text import ID

if TYPE_CHECKING:
    from jitter_workshop.tuning.switched import Switched
    from jitter_workshop.tuning.writer import HostWriter

_known: dict[str, Kind] = {}
"""The kinds by their names. Each subclass with a name of its own adds itself."""
_FURTHER = ("tasks", "cpu", "system", "cgroup", "next_boot")
"""Modules that define further kinds. They are loaded, one after the other, when a kind is requested that is not known
yet."""


class Kind:
    """Handle a plain value in a file. This class is the base of the other kinds.

    - ``survives_boot``: a written value is still there after a reboot (files, boot parameters).
    - ``effect_after_boot``: a written value takes effect only after a reboot.
    - ``always``: the plan has a write to this setting even if the value stays the same. Another write of the plan makes
      the kernel overwrite the setting. A restore then needs the old value.
    - ``self_moving``: the kernel changes the setting by itself at any time. So another value does not mean that
      somebody changed it.
    - ``fleeting``: only the process that wrote the value knows if it is still in effect. So other processes do not
      report that the value has drifted.
    - ``of_task``: the setting belongs to one task. It is no error if the task ends before the write.
    - ``never_gone``: the setting can always be written, even if its file does not exist yet.
    """

    name = "value"
    always = False
    self_moving = False
    fleeting = False
    of_task = False
    survives_boot = False
    effect_after_boot = False
    never_gone = False

    def __init_subclass__(cls) -> None:
        if "name" in vars(cls):
            _known[cls.name] = cls()

    def read(self, root: HostRoot, path: str) -> TextReading:
        """Return the setting's current value. It has the same form as the fields ``before`` and ``after`` of a Change.
        If it cannot be read, return no value and the reason.
        """
        return root.reading(path)

    def meaning(self, value: str) -> object:
        """Return the meaning of a value, an object that can be compared. Raise ValueError if the text has no meaning
        for this kind."""
        return value.split()

    def same(self, a: str, b: str) -> bool:
        """Return True if two values mean the same. If a text has no meaning for this kind, the words of both texts are
        compared.
        """
        try:
            return self.meaning(a) == self.meaning(b)
        except ValueError:
            return a.split() == b.split()

    def write(self, writer: HostWriter, path: str, value: str) -> None:
        """Set the value. Raise OSError as the kernel gives it."""
        writer.write(path, value)

    def by_kernel(self, root: HostRoot, path: str, found: str, known: Collection[str], switched: Switched) -> bool:
        """Return True if the kernel may have changed one of the values ``known`` to ``found``. ``switched``: our
        changes to CPUs and cpusets, which can have this side effect."""
        return False

    def waits_for(self, root: HostRoot, path: str, value: str) -> str:
        """Return why the setting cannot have ``value`` now, such as "CPU 3 is offline". Return "" if no such reason is
        known.
        """
        return ""

    def make_sure(self, writer: HostWriter, path: str, value: str) -> None:
        """Make the present value of the setting durable. ``value``: the present value. An earlier write of this value
        may have been interrupted.

        The value is put on the disk, and the leftovers of the interrupted write are removed. Raise OSError if this
        fails.
        """

    def halfway(self, found: str, after: str) -> bool:
        """Return True if only an interrupted write of ``after`` by this tool can explain ``found``."""
        return False

    def between(self, found: str, before: str, after: str) -> bool:
        """Return True if only an interrupted write of ours can have made ``found``. The write changed ``before`` to
        ``after``, or ``after`` to ``before``."""
        return False

    def in_effect(self, root: HostRoot, value: str) -> bool:
        """Return True if the running kernel has ``value`` in effect. A kind whose values take effect without a reboot
        always returns True."""
        return True

    def exists(self, root: HostRoot, path: str) -> bool:
        """Return True if the object that ``path`` names still exists. A setting needs no restore if its task ended or
        its device was removed."""
        return self.never_gone or root.reading(path).reason != "no such file"


_known[Kind.name] = Kind()


class Number(Kind):
    """Handle a whole decimal number."""

    name = "number"

    def meaning(self, value: str) -> object:
        number = parse_integer(value.strip())
        if number is None:
            raise ValueError("not a whole number")
        return number


class Choice(Kind):
    """Handle a choice such as ``always [madvise] never``. ``marks``: the two characters around the chosen word.
    ``read`` returns this word, and ``write`` writes the word alone."""

    name = "choice"
    marks = "[]"

    def read(self, root: HostRoot, path: str) -> TextReading:
        reading = root.reading(path)
        if reading.text is None:
            return reading
        chosen = [w[1:-1] for w in reading.text.split() if len(w) > 2 and w[0] + w[-1] == self.marks]
        return TextReading(chosen[0]) if len(chosen) == 1 else TextReading(None, "the file must mark exactly one word")


class CpuList(Kind):
    """Handle a CPU list, compared as a set of CPUs."""

    name = "cpu-list"

    def meaning(self, value: str) -> object:
        return CpuSet.parse_list(value)

    def by_kernel(self, root: HostRoot, path: str, found: str, known: Collection[str], switched: Switched) -> bool:
        """Return True if the kernel may have set ``found`` because CPUs or cpusets changed.

        In most files, ``found`` is then one of the ``known`` lists without its offline CPUs. In an interrupt's file,
        ``found`` may also be the list of all online CPUs. The kernel sets this list when the last CPU of an interrupt
        goes offline. In a file of this tool's own cpusets, ``found`` may be any value.
        """
        if "/cgroup/" in path and "/jitter-workshop" in path:
            return bool(switched)
        if not switched.cpus:
            return False
        lost = {cpus & online for cpus in cpu_lists(known) for online in switched.online}
        opened = set(switched.online) if path.startswith("/proc/irq/") else set()
        return cpu_lists([found]) <= lost | opened

    def waits_for(self, root: HostRoot, path: str, value: str) -> str:
        return offline_among(root, cpu_lists([value]))


class CpuMask(Kind):
    """Handle a hex mask, compared as a set of CPUs."""

    name = "cpu-mask"

    def meaning(self, value: str) -> object:
        return CpuSet.parse_mask(value)

    def by_kernel(self, root: HostRoot, path: str, found: str, known: Collection[str], switched: Switched) -> bool:
        """Return True if ``found`` is one of the ``known`` masks without CPUs that went offline."""
        try:
            now, values = CpuSet.parse_mask(found), [CpuSet.parse_mask(text) for text in known]
        except ValueError:
            return False
        return switched.cpus and now in {cpus & online for cpus in values for online in switched.online}


def offline_among(root: HostRoot, lists: Collection[CpuSet]) -> str:
    """Return a clause that names the offline CPUs in ``lists``, such as "CPU 3 is offline"; "" if all of them are
    online."""
    from jitter_workshop.host.cpu.topology import CPU_DIR

    wanted = CpuSet.of(cpu for cpus in lists for cpu in cpus)
    present, online = root.cpu_list(f"{CPU_DIR}/present"), root.cpu_list(f"{CPU_DIR}/online")
    away = (wanted & present) - online if present and online else CpuSet()
    return f"CPU {away} {'are' if len(away) > 1 else 'is'} offline" if away else ""


def cpu_lists(texts: Collection[str]) -> set[CpuSet]:
    """Return the CPU lists among ``texts`` as sets of CPUs. Texts of any other form are left out."""
    found = set()
    for text in texts:
        with contextlib.suppress(ValueError):
            found.add(CpuSet.parse_list(text))
    return found


def kind_of(name: str) -> Kind:
    """Return the kind of this name. Raise ValueError if the name is unknown, as in a journal that is damaged or from a
    newer version."""
    if name not in _known:
        from importlib import import_module

        for module in _FURTHER:
            import_module(f"jitter_workshop.tuning.setting_types.{module}")
            if name in _known:
                break
    try:
        return _known[name]
    except KeyError:
        raise ValueError(f"there is no kind of setting '{name[:ID]}'") from None
