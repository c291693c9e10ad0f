"""Find all tunables: they are the classes in the modules that this file lists. To add a tunable, write a class in one
of these modules.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module

from jitter_workshop.errors import UsageError
from jitter_workshop.model.change import ONCE, Wanted
from jitter_workshop.tuning.base import Settings, Tunable

HEADINGS = {
    "cpu_frequency": "CPU frequency",
    "cpu_idle": "Idle states",
    "cpu_online": "CPUs and their threads",
    "isolation": "Isolation",
    "interrupts": "Interrupts",
    "workqueues": "Workqueues",
    "tasks": "Tasks",
    "scheduler": "Scheduler and timers",
    "watchdogs": "Watchdogs and tracing",
    "memory": "Memory",
    "network": "Network",
    "services": "Services",
    "boot": "Boot parameters",
    "clock": "Clock",
    "temperature": "Heat",
    "machine": "Machine and firmware",
    "observed": "Only reported",
}
"""Modules of this package, in the order in which ``status`` shows them, with the headings above their lines."""


def tunable_heading(tunable: Tunable) -> str:
    """Return the heading above a tunable's line in ``status``."""
    family = type(tunable).__module__.rpartition(".")[2]
    return HEADINGS.get(family, family)


@cache
def tunables() -> tuple[Tunable, ...]:
    """Return one instance of each tunable, in the order of ``status``."""
    found: list[Tunable] = []
    for family in HEADINGS:
        module = import_module(f"jitter_workshop.tuning.tunables.{family}")
        for item in vars(module).values():
            if (
                isinstance(item, type)
                and issubclass(item, Tunable)
                and item not in (Tunable, Settings)
                and item.__module__ == module.__name__
                and item.id
            ):
                found.append(item())
    return tuple(found)


def find_tunable(tunable_id: str, also: Sequence[str] = ()) -> Tunable:
    """Return the tunable with this id. For a boot parameter, the id may also begin with ``boot:``.

    Raise UsageError for an unknown id; the error suggests the most similar known word. ``also``: further words that the
    error may suggest.
    """
    for tunable in tunables():
        if tunable_id == tunable.id or (tunable.when == "boot" and tunable_id == f"boot:{tunable.id}"):
            return tunable
    import difflib

    near = difflib.get_close_matches(tunable_id, [*also, *(t.id for t in tunables())], n=1, cutoff=0.5)
    from jitter_workshop.model.text import ID, clean

    raise UsageError(
        f"there is no tunable '{clean(tunable_id, ID)}'",
        f"did you mean '{near[0]}'?" if near else "'jitter-workshop status' lists all tunables",
    )


def parse_wanted(words: Sequence[str], also: Sequence[str] = ()) -> tuple[Wanted, ...]:
    """Return the tunables that a command line names. ``words``: ``ID`` or ``ID=VALUE``. A boot parameter with the
    prefix ``once:`` is set for one boot.

    Raise UsageError for an unknown id, or for ``once:`` before an id that is not a boot parameter. Also raise it for a
    value that the tunable does not take, or if the same id has two different values.
    """
    wanted: dict[str, Wanted] = {}
    for word in words:
        name, equals, value = word.partition("=")
        once = name.strip().startswith(ONCE)
        tunable = find_tunable(name.strip().removeprefix(ONCE), also)
        if once and tunable.when != "boot":
            raise UsageError(
                f"only boot parameters can be set for one boot, and {tunable.id} is none", f"write only '{tunable.id}'"
            )
        if equals and not tunable.values:
            raise UsageError(f"{tunable.id} takes no value", f"write only '{tunable.id}'")
        asked = Wanted(tunable.id, value.strip() if equals else None, once)
        if wanted.setdefault(asked.id, asked) != asked:
            raise UsageError(f"{asked.id} is named twice, with different values", "name it once")
    return tuple(wanted.values())


def set_for_one_boot(wanted: Sequence[Wanted]) -> tuple[Wanted, ...]:
    """Return ``wanted`` with its boot parameters set for the next boot only. Raise UsageError if ``wanted`` has no boot
    parameter."""
    made = tuple(Wanted(one.id, one.value, once=find_tunable(one.id).when == "boot") for one in wanted)
    if not any(one.once for one in made):
        raise UsageError("none of these tunables is a boot parameter", "only boot parameters can be set for one boot")
    return made
