"""Parse and print sets of CPUs in the kernel's two forms: lists and masks.

A list is a text such as ``0-3,8``. A mask is a text such as ``ffff,00000001``. It has hexadecimal groups of 32 bits,
the most significant group first. Sources: ``Documentation/core-api/printk-formats.rst`` (``%*pbl``, ``%*pb``) and
``bitmap_parselist``. No other module parses these forms.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from jitter_workshop.model.record import dataclass
from jitter_workshop.model.text import ID

MAX_CPU = 65_535
"""The largest accepted CPU number. A larger number is a typing mistake that could fill the memory. CONFIG_NR_CPUS is at
most 8,192 today."""

_MAX_NAMED = 4 * (MAX_CPU + 1)
"""The largest number of CPUs that a list may name, repeats included. Without this limit, a megabyte of ``0-65535,``
would name ten billion CPUs."""


@dataclass(frozen=True, slots=True)
class CpuSet:
    """Hold an immutable set of CPU numbers, sorted and without duplicates."""

    cpus: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "cpus", tuple(sorted(set(self.cpus))))
        if self.cpus and (self.cpus[0] < 0 or self.cpus[-1] > MAX_CPU):
            raise ValueError(f"CPU numbers go from 0 to {MAX_CPU}")

    @property
    def named(self) -> str:
        """Return the set in words, such as ``CPU 3`` or ``CPUs 2-3``."""
        return f"{'CPU' if len(self.cpus) == 1 else 'CPUs'} {self}"

    @classmethod
    def of(cls, cpus: Iterable[int]) -> CpuSet:
        """Return a set made from any iterable of numbers."""
        return cls(tuple(cpus))

    @classmethod
    def parse_list(cls, text: str, last: int | None = None) -> CpuSet:
        """Return the set of CPUs in a kernel list such as ``0-3,8,10-14:2/4``. The set is empty for an empty text,
        blanks and ``(null)``.

        ``last``: the host's largest possible CPU number. If it is given, the forms ``N``, ``4-N`` and ``all`` of boot
        parameters are accepted, too. Raise ValueError if the text is not a list.
        """
        text = text.strip().strip("\0").strip()
        if text in ("", "(null)"):
            return cls()
        found: list[int] = []
        rising = True
        for part in text.split(","):
            cpus = _parse_range(part.strip(), last)
            rising = rising and (not found or not cpus or found[-1] < cpus[0])
            found.extend(cpus)
            if len(found) > _MAX_NAMED:
                raise ValueError("the CPU list repeats the same CPUs too often")
        return _sorted(found) if rising else cls(tuple(found))

    @classmethod
    def if_list(cls, text: str | None, last: int | None = None) -> CpuSet | None:
        """Return the set of CPUs in a kernel list, as :meth:`parse_list` does. Return None if ``text`` is None or not a
        list."""
        try:
            return None if text is None else cls.parse_list(text, last)
        except ValueError:
            return None

    @classmethod
    def parse_words(cls, text: str) -> CpuSet:
        """Return the set in a text of numbers separated by blanks, such as ``0 1 2 3``. Only cpufreq writes CPUs in
        this form.

        Raise ValueError if the text has any other form.
        """
        return cls(tuple(_number(word) for word in text.strip("\0").split()))

    @classmethod
    def parse_mask(cls, text: str) -> CpuSet:
        """Return the set in a hex mask, with commas between groups of 32 bits, the most significant group first. A
        leading ``0x`` is accepted.

        Raise ValueError if the text is not a mask.
        """
        text = text.strip().strip("\0").strip()
        if text in ("", "(null)"):
            return cls()
        groups = text.removeprefix("0x").removeprefix("0X").split(",")
        bits = 0
        for position, group in enumerate(groups):
            if not group or not all(c in "0123456789abcdefABCDEF" for c in group):
                raise ValueError(f"not a CPU mask: {text!r}")
            if len(group) > 8 and len(groups) > 1:
                raise ValueError(f"not a CPU mask, because a group has more than 8 digits: {text!r}")
            if len(group) > (MAX_CPU + 1) // 4 or position > MAX_CPU // 32:
                raise ValueError("the CPU mask is too long for any kernel")
            bits = (bits << 32) | int(group, 16)
        return cls(tuple(i for i, bit in enumerate(f"{bits:b}"[::-1]) if bit == "1"))

    def to_mask(self, groups: int = 1) -> str:
        """Return the set as a hex mask in the kernel's form, with at least ``groups`` groups of eight digits."""
        bits = 0
        for cpu in self.cpus:
            bits |= 1 << cpu
        count = max(groups, (bits.bit_length() + 31) // 32, 1)
        return ",".join(f"{bits >> (32 * i) & 0xFFFFFFFF:08x}" for i in reversed(range(count)))

    def __str__(self) -> str:
        """Return the set in the kernel's list form, such as ``0-3,8``. For the empty set, return ""."""
        return _list_text(self.cpus)

    def __contains__(self, cpu: object) -> bool:
        return cpu in self.cpus

    def __iter__(self) -> Iterator[int]:
        return iter(self.cpus)

    def __len__(self) -> int:
        return len(self.cpus)

    def __or__(self, other: CpuSet) -> CpuSet:
        return CpuSet(self.cpus + other.cpus)

    def __and__(self, other: CpuSet) -> CpuSet:
        if _one_range(other.cpus):
            first, end = _span(self.cpus, other.cpus)
            return _sorted(self.cpus[first:end])
        if _one_range(self.cpus):
            first, end = _span(other.cpus, self.cpus)
            return _sorted(other.cpus[first:end])
        return _sorted(sorted(set(self.cpus).intersection(other.cpus)))

    def __sub__(self, other: CpuSet) -> CpuSet:
        if _one_range(other.cpus):
            first, end = _span(self.cpus, other.cpus)
            return _sorted(self.cpus[:first] + self.cpus[end:])
        return _sorted(sorted(set(self.cpus).difference(other.cpus)))


def _sorted(cpus: Sequence[int]) -> CpuSet:
    """Return a CpuSet of ``cpus`` without checks, for speed. The caller must pass valid numbers, sorted and without
    duplicates."""
    # Large hosts have thousands of lists of CPUs.
    made = object.__new__(CpuSet)
    object.__setattr__(made, "cpus", tuple(cpus))
    return made


@lru_cache(maxsize=256)
def _list_text(cpus: tuple[int, ...]) -> str:
    """Return CPU numbers in the kernel's list form, such as ``0-3,8``. The result is cached, because thousands of
    interrupts have the same few lists."""
    if len(cpus) > 1 and _one_range(cpus):
        return f"{cpus[0]}-{cpus[-1]}"
    parts: list[str] = []
    start: int | None = None
    previous = -2
    for cpu in (*cpus, -1):
        if cpu == previous + 1:
            previous = cpu
            continue
        if start is not None:
            parts.append(str(start) if start == previous else f"{start}-{previous}")
        start = previous = cpu
    return ",".join(parts)


def _one_range(cpus: tuple[int, ...]) -> bool:
    """Return True if the sorted numbers have no gap. This is so for most lists of CPUs."""
    return bool(cpus) and cpus[-1] - cpus[0] == len(cpus) - 1


def _span(cpus: tuple[int, ...], within: tuple[int, ...]) -> tuple[int, int]:
    """Return two indices of ``cpus``: the first CPU number in the range ``within``, and the position after the last
    one."""
    return bisect_left(cpus, within[0]), bisect_right(cpus, within[-1])


@dataclass(frozen=True, slots=True)
class PartitionState:
    """Hold the state in ``cpuset.cpus.partition``.

    - ``kind``: ``member``, ``root`` or ``isolated``.
    - ``valid``: False if the kernel accepted the request but could not make the partition.
    - ``reason``: the kernel's reason why it could not make the partition; "" if the kernel gives none.
    """

    kind: str
    valid: bool = True
    reason: str = ""


def parse_partition(text: str) -> PartitionState:
    """Return the state in a text such as ``isolated`` or ``isolated invalid (Cpu list in cpuset.cpus not exclusive)``
    (Documentation/admin-guide/cgroup-v2.rst). Raise ValueError if the text has any other form."""
    kind, blank, rest = text.strip().strip("\0").strip().partition(" ")
    rest = rest.strip()
    if kind not in ("member", "root", "isolated"):
        raise ValueError(f"not the state of a partition: {text[:ID]!r}")
    if not blank:
        return PartitionState(kind)
    word, _, reason = rest.partition(" ")
    if word != "invalid" or kind == "member":
        raise ValueError(f"not the state of a partition: {text[:ID]!r}")
    return PartitionState(kind, False, " ".join(reason.strip().removeprefix("(").removesuffix(")").split()))


def _number(text: str, last: int | None = None) -> int:
    if text == "N" and last is not None:
        return last
    if not (text.isascii() and text.isdigit()) or len(text) > 6:
        raise ValueError(f"not a CPU number: {text!r}")
    value = int(text)
    if value > MAX_CPU:
        raise ValueError(f"CPU numbers go from 0 to {MAX_CPU}")
    return value


def _parse_range(part: str, last: int | None) -> Sequence[int]:
    """Return the CPU numbers in one part of a list: ``3``, ``0-3`` or ``0-15:2/4`` (the first 2 of each 4,
    ``bitmap_parselist``). Raise ValueError if the part has another form."""
    span, colon, stride = part.partition(":")
    if span.lower() == "all" and last is not None:
        span = f"0-{last}"
    first, dash, end = span.partition("-")
    low = _number(first, last)
    high = _number(end, last) if dash else low
    if high < low:
        raise ValueError(f"the range goes from a higher to a lower CPU: {part!r}")
    if not colon:
        return range(low, high + 1)
    if not dash:
        raise ValueError(f"a stride needs a range: {part!r}")
    used_text, slash, group_text = stride.partition("/")
    used, group = _number(used_text, last), _number(group_text, last)
    if not slash or used == 0 or group == 0 or used > group:
        raise ValueError(f"not a stride: {part!r}")
    return [cpu for cpu in range(low, high + 1) if (cpu - low) % group < used]
