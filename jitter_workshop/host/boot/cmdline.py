"""Parse the kernel's boot parameters as the kernel does (Documentation/admin-guide/kernel-parameters.rst)."""

from __future__ import annotations

import re

from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.record import dataclass

PATH = "/proc/cmdline"

_WORD = re.compile(r"""(?:[^" \t\n\r\v\f]|"[^"]*"?)+""")


@dataclass(frozen=True, slots=True)
class CommandLine:
    """Hold the kernel's boot parameters.

    - ``parameters``: (name, value) for each parameter, in the order of the line. The value is None if the parameter has
      no ``=``. Text after `` -- `` is for init and is left out.
    - ``text``: the whole line, None if it cannot be read. Clean this text before it is shown, because a recorded host
      is not trustworthy.
    - ``reason``: the reason why ``text`` is None.
    """

    parameters: tuple[tuple[str, str | None], ...]
    text: str | None
    reason: str = ""

    def has(self, name: str) -> bool:
        """Return True if the parameter is present, with or without a value."""
        return bool(self.values(name))

    def value(self, name: str) -> str | None:
        """Return the parameter's last value, which is the effective one for most parameters. Return None if the
        parameter is missing or has no value."""
        found = self.values(name)
        return found[-1] if found else None

    def values(self, name: str) -> tuple[str | None, ...]:
        """Return all values of the parameter, in their order. Hyphens and underscores in the name count as equal, as in
        the kernel."""
        wanted = name.replace("-", "_")
        return tuple(value for key, value in self.parameters if key.replace("-", "_") == wanted)

    def cpus(self, name: str, last: int | None = None) -> CpuSet | None:
        """Return the CPUs in the parameter's last value. Return None if the parameter has no value, or if the last
        value is no CPU list.

        ``last``: the largest possible CPU number, which ``N`` and ``all`` in a list refer to.
        """
        return CpuSet.if_list(self.value(name), last)


@dataclass(frozen=True, slots=True)
class Isolcpus:
    """Hold the boot parameter ``isolcpus``. ``flags``: those flags in the parameter that the kernel knows;
    ``("domain",)`` if the parameter has no flag. ``cpus``: the CPUs. ``cpus`` is None if the list or a flag is
    malformed; the kernel then ignores the parameter."""

    flags: tuple[str, ...]
    cpus: CpuSet | None


def read_command_line(root: HostRoot) -> CommandLine:
    """Return the boot parameters of the running kernel, or of the recorded one."""
    reading = root.reading(PATH)
    if reading.text is None:
        return CommandLine((), None, f"{PATH}: {reading.reason}")
    return CommandLine(parse_command_line(reading.text), reading.text)


def parse_command_line(text: str) -> tuple[tuple[str, str | None], ...]:
    """Return the boot parameters in a line as (name, value).

    The line is split as the kernel splits it: at white space outside double quotes. Double quotes cannot be escaped and
    are not part of a value. A lone ``--`` ends the kernel's parameters.
    """
    found: list[tuple[str, str | None]] = []
    for word in split_words(text):
        if word == "--":
            break
        quoted = word.startswith('"')
        word = word[1:] if quoted else word
        name, equals, value = word.partition("=")
        if not name:
            # To the kernel, "=x" is also a name, but no parameter has it.
            name, equals, value = word, "", ""
        if equals and value.startswith('"'):
            value = value[1:].removesuffix('"')
        elif quoted:
            value = value.removesuffix('"')
            name = name if equals else name.removesuffix('"')
        if name:
            found.append((name, value if equals else None))
    return tuple(found)


def split_words(text: str) -> list[str]:
    """Return the words of a line of boot parameters. Quotes stay in the words."""
    return _WORD.findall(text)


def parse_isolcpus(value: str, last: int | None = None) -> Isolcpus:
    """Return the CPUs and flags in a value of ``isolcpus``, which has the form ``[flag,…]LIST``. The flags are
    ``nohz``, ``domain`` and ``managed_irq``. ``last``: the largest possible CPU number, for lists with ``N`` or
    ``all``."""
    flags: list[str] = []
    rest = value
    # To the kernel, a word at the beginning is a flag, even ``all`` and ``N``.
    while rest[:1].isascii() and rest[:1].isalpha():
        flag, comma, rest = rest.partition(",")
        if flag in ("nohz", "domain", "managed_irq") and comma:
            flags.append(flag)
        elif not all(c.isascii() and (c.isalpha() or c == "_") for c in flag):
            return Isolcpus(tuple(flags), None)
    return Isolcpus(tuple(dict.fromkeys(flags)) or ("domain",), CpuSet.if_list(rest, last))
