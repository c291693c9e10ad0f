"""One write to the host or to a process, as it is shown before it happens, and the plan that it is part of."""

from __future__ import annotations

from typing import Literal

from jitter_workshop.model.record import dataclass

Risk = Literal["low", "medium", "high"]
When = Literal["run", "runtime", "boot", "host", "report"]

ONCE = "once:"
"""What stands before the id of a boot parameter that is wanted for the next boot alone."""


@dataclass(frozen=True, slots=True)
class Change:
    """What would be written where. ``when`` = ``run`` lives only as long as a run (thread affinity); ``path`` is a file
    or, for what is no file, the call that sets it (``sched_setaffinity(TID@START)``).

    ``kind``: how ``path`` is read, compared and written (``tuning/setting_types/kinds.py``). ``lease``: it lasts only
    as long as somebody holds it. ``then``: what follows it once, after the last write (``update-grub``), "" for
    nothing.
    """

    n: int
    tunable: str
    path: str
    before: str
    after: str
    when: When
    risk: Risk
    why: str
    lease: bool = False
    kind: str = "value"
    then: str = ""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A tunable that the plan leaves out, and why (nothing to do, not available here, only reported). ``partly``: only
    some of its settings are left as they are; the others are in the plan."""

    tunable: str
    reason: str
    partly: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """Every write in the order in which it would happen. ``hot_cpus``: the CPUs that it is for."""

    boot_id: str | None
    hot_cpus: tuple[int, ...]
    changes: tuple[Change, ...]
    skipped: tuple[Skipped, ...] = ()


@dataclass(frozen=True, slots=True)
class Wanted:
    """``ID`` or ``ID=VALUE`` of a command line, a profile or a lesson; ``value`` None: the tunable's good value.
    ``once``: a boot parameter for the next boot alone, ``once:ID``."""

    id: str
    value: str | None = None
    once: bool = False

    def __str__(self) -> str:
        name = f"{ONCE}{self.id}" if self.once else self.id
        return name if self.value is None else f"{name}={self.value}"


@dataclass(frozen=True, slots=True)
class Applied:
    """A write that was made. ``read_back``: what the host says after the whole plan, null where it cannot be read."""

    n: int
    tunable: str
    path: str
    before: str
    after: str
    read_back: str | None


@dataclass(frozen=True, slots=True)
class Refused:
    """A write that the kernel, or this tool, refused."""

    tunable: str
    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class ApplyResult:
    """What ``apply`` did. ``journal_id``: None where nothing was journalled, because nothing was to be written.
    ``ended``: how many writes that were shown fell away, because the tasks that they were for had ended."""

    journal_id: str | None
    applied: tuple[Applied, ...]
    refused: tuple[Refused, ...]
    needs_reboot: bool
    ended: int = 0


@dataclass(frozen=True, slots=True)
class Restored:
    """A setting given back."""

    tunable: str
    path: str
    from_: str
    to: str


@dataclass(frozen=True, slots=True)
class LeftAlone:
    """A setting that was not given back: somebody else changed it since, or the host refuses."""

    tunable: str
    path: str
    expected: str
    found: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class RestoreResult:
    """What ``restore`` did (JSON writes ``from_`` as ``from``). ``trace_instances_removed``: names of instances of the
    kernel's trace that a killed measurement left over."""

    restored: tuple[Restored, ...]
    left_alone: tuple[LeftAlone, ...]
    needs_reboot: bool
    trace_instances_removed: tuple[str, ...] = ()
