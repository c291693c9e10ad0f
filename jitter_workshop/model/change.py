"""Define one write to the host or to a process. The user sees each write before it is made. Also define the plan of all
writes, and the outcomes of ``apply`` and ``restore``."""

from __future__ import annotations

from typing import Literal

from jitter_workshop.model.record import dataclass

Risk = Literal["low", "medium", "high"]
When = Literal["run", "runtime", "boot", "host", "report"]

ONCE = "once:"
"""The prefix of the id of a boot parameter that is wanted for the next boot only."""

IRQ_AFFINITY = "irq-affinity"
"""The id of the tunable that takes the hot CPUs out of the affinities of interrupts."""
IRQ_HERE = "irq-here"
"""The id of the tunable by which a chapter has one device interrupt the hot CPU during a run."""


@dataclass(frozen=True, slots=True)
class Change:
    """Hold one planned write.

    - ``when``: ``run`` for a write that lasts only as long as a run, such as a thread's affinity.
    - ``path``: the file to write, or the system call that makes the change, such as ``sched_setaffinity(TID@START)``.
    - ``kind``: the way in which ``path`` is read, compared and written (``tuning/setting_types/kinds.py``).
    - ``lease``: True if the agent restores the setting when the connection that requested the write ends.
    - ``then``: the command to run once after the last write, such as ``update-grub``; "" for none.
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
    """Hold a tunable that the plan leaves out, with the reason. ``reason``: for example, nothing to do. ``partly``:
    True if the plan leaves out only a part of the tunable, and changes other settings of it."""

    tunable: str
    reason: str
    partly: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """Hold all writes, in the order in which they would be made. ``hot_cpus``: the CPUs that the plan is for."""

    boot_id: str | None
    hot_cpus: tuple[int, ...]
    changes: tuple[Change, ...]
    skipped: tuple[Skipped, ...] = ()


@dataclass(frozen=True, slots=True)
class Wanted:
    """Hold a wanted tunable, ``ID`` or ``ID=VALUE``, from a command line, a profile or a lesson. ``value``: None means
    the tunable's good value. ``once``: True if a boot parameter is for the next boot only (``once:ID``)."""

    id: str
    value: str | None = None
    once: bool = False

    def __str__(self) -> str:
        name = f"{ONCE}{self.id}" if self.once else self.id
        return name if self.value is None else f"{name}={self.value}"


@dataclass(frozen=True, slots=True)
class Applied:
    """Hold a write that was made. ``read_back``: the value read after the whole plan, None if it cannot be read."""

    n: int
    tunable: str
    path: str
    before: str
    after: str
    read_back: str | None


@dataclass(frozen=True, slots=True)
class Refused:
    """Hold a write that the kernel, or this tool, refused."""

    tunable: str
    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class ApplyResult:
    """Hold the outcome of ``apply``.

    - ``journal_id``: None if there was nothing to write.
    - ``ended``: the number of shown writes that were not made, because their tasks had ended.
    - ``changed``: the number of shown writes that were not made, because their settings had changed since the plan.
    """

    journal_id: str | None
    applied: tuple[Applied, ...]
    refused: tuple[Refused, ...]
    needs_reboot: bool
    ended: int = 0
    changed: int = 0

    @property
    def shown(self) -> int:
        """Return the number of writes that were shown before the apply: those made, refused, and not made."""
        return len(self.applied) + len(self.refused) + self.ended + self.changed


@dataclass(frozen=True, slots=True)
class Restored:
    """Hold a setting that was restored."""

    tunable: str
    path: str
    from_: str
    to: str


@dataclass(frozen=True, slots=True)
class LeftAlone:
    """Hold a setting that was not restored. Either somebody else has changed the setting after this tool, or the host
    refuses the old value."""

    tunable: str
    path: str
    expected: str
    found: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class RestoreResult:
    """Hold the outcome of ``restore``. In JSON, the field ``from_`` of a restored setting is called ``from``.

    ``trace_instances_removed``: the names of the kernel's trace instances that ``restore`` removed. A killed
    measurement had left these instances behind.
    """

    restored: tuple[Restored, ...]
    left_alone: tuple[LeftAlone, ...]
    needs_reboot: bool
    trace_instances_removed: tuple[str, ...] = ()
