"""Define tunables that are a single file with a single value. Most of the kernel's switches are such files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import ClassVar

from jitter_workshop.errors import UsageError
from jitter_workshop.host.root import HostRoot, parse_integer, printable
from jitter_workshop.model.status import Assessment
from jitter_workshop.model.text import ID, SENTENCE
from jitter_workshop.tuning.base import Setting, Settings, Tunable, Unavailable
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.setting_types.kinds import kind_of


class OneFile(Settings):
    """Define a tunable whose only setting is one file.

    - ``file``: the file's path.
    - ``kind``: the name of the kind by which the file is read and written.
    - ``absent``: the reason to show if there is no such file.
    - ``allowed``: the allowed words for VALUE; () if VALUE is a whole number. ``bounds``: the smallest and the largest
      allowed number, if VALUE is a whole number.

    Without VALUE, the wanted value is that of :meth:`best`.
    """

    file: ClassVar[str]
    kind: ClassVar[str] = "number"
    absent: ClassVar[str] = "this kernel was built without this feature"
    allowed: ClassVar[tuple[str, ...]] = ()
    bounds: ClassVar[tuple[int, int]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if hasattr(cls, "file"):
            cls.owns = (cls.file,)

    def settings(self, host: Host, value: str | None) -> Sequence[Setting]:
        current = self.current(host)
        wanted = self.best(host, current) if value is None else self.asked(host, value)
        return [Setting(self.file, current, wanted, self.kind)]

    def current(self, host: Host) -> str:
        """Return the file's value. Raise Unavailable if the file cannot be read."""
        return read_value(host.root, self.file, self.kind, self.absent)

    def best(self, host: Host, current: str) -> str:
        """Return the good value for this host. If ``current`` is as good, return ``current``. Raise Unavailable if no
        value is better than the others.
        """
        assert self.default is not None
        return self.default

    def asked(self, host: Host, value: str) -> str:
        """Return the value to write to the file for ``ID=value``. Raise UsageError for an invalid value."""
        return one_of(self, value, self.allowed) if self.allowed else whole_number(self, value, *self.bounds)


class TradeOff(OneFile):
    """Define a tunable of one file whose best value is disputed by experts.

    ``both_sides``: one or two sentences on the advantage of each value. ``status`` shows these sentences and the
    current value. The file is changed only if the user gives a value (``ID=VALUE``).
    """

    both_sides: ClassVar[str]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.paths = cls.owns

    def judge(self, host: Host) -> Assessment:
        current = self.current(host)
        return self.answer("info", current, self.sides(host, current))

    def sides(self, host: Host, current: str) -> str:
        """Return the text of ``both_sides``, or the part of it that matters on this host."""
        return self.both_sides

    def best(self, host: Host, current: str) -> str:
        raise needs_value(self)


def needs_value(tunable: Tunable) -> Unavailable:
    """Return the error for a tunable without ``=VALUE``, if the tunable needs a value."""
    return Unavailable(f"neither value is better for all: write {tunable.id}=VALUE ({tunable.values})", info=True)


def read_value(root: HostRoot, path: str, kind: str = "number", absent: str = "there is no such file") -> str:
    """Return the value of a file as one line that can be shown and compared.

    Raise Unavailable if the file cannot be read. Its message is ``absent`` if there is no such file, else the reason.
    """
    reading = kind_of(kind).read(root, path)
    if reading.text is None:
        if reading.reason == "no such file":
            raise Unavailable(absent)
        if reading.reason == "not permitted":
            raise Unavailable(not_permitted(root))
        raise Unavailable(f"the setting cannot be read: {reading.reason}")
    if kind == "number" and parse_integer(reading.text) is None:
        raise Unavailable("the setting cannot be read: the file does not hold a whole number")
    if printable(reading.text, SENTENCE) != reading.text:
        raise Unavailable("the setting cannot be read: the file must have exactly one line of text, and does not")
    return reading.text


def not_permitted(root: HostRoot) -> str:
    """Return the reason to show if a file exists but may not be read."""
    if os.geteuid() == 0 and not root.recorded:
        return "not permitted, even to root (by a lockdown or a container)"
    return "only root can read this file"


def without_debugfs(root: HostRoot) -> str:
    """Return the reason why a setting in debugfs cannot be read. Return "" if debugfs is mounted."""
    folder = "/sys/kernel/debug"
    mounts = root.text("/proc/self/mountinfo", 16 << 20) or ""
    if not mounts or any(line.split()[4:5] == [folder] for line in mounts.splitlines()):
        return ""
    return f"only debugfs shows this setting, and debugfs is not mounted here (mount -t debugfs none {folder})"


def number_of(text: str) -> int:
    """Return the number in a text that ``read_value`` returned."""
    number = parse_integer(text)
    assert number is not None
    return number


def whole_number(tunable: Tunable, value: str | None, low: int, high: int) -> str:
    """Return VALUE if it is a whole number from ``low`` to ``high``; if VALUE is None, return the default. Raise
    UsageError for any other VALUE."""
    text = (tunable.default if value is None else value) or ""
    number = parse_integer(text)
    if number is None or not low <= number <= high:
        raise UsageError(
            f"{tunable.id} cannot be '{printable(text, ID)}'", f"VALUE is {tunable.values} ({low} to {high})"
        )
    return str(number)


def one_of(tunable: Tunable, value: str | None, allowed: Sequence[str]) -> str:
    """Return VALUE if it is one of the words ``allowed``; if VALUE is None, return the default. Raise UsageError for
    any other VALUE."""
    text = (tunable.default if value is None else value) or ""
    if text not in allowed:
        raise UsageError(f"{tunable.id} cannot be '{printable(text, ID)}'", f"VALUE is one of: {', '.join(allowed)}")
    return text
